import type { Command } from '../command.js';
import { EXIT } from '../exit-codes.js';
import { McpServer } from '../mcp/server.js';
import { isWriteTool, type Tool, TOOLS } from '../mcp/tools.js';

const READS = TOOLS.filter((tool) => !isWriteTool(tool));

function namesOf(tools: readonly Tool[]): string {
  return tools.map(({ name }) => `  ${name}`).join('\n');
}

export const mcp: Command = {
  name: 'mcp',
  summary: 'serve the API to an AI assistant over stdio (Model Context Protocol), read-only by default',
  details: `Uses the Sandbox key; a Live key also needs --live to write. No tool shows install data. A purchase needs two calls:
the first returns a preview with its price, the second confirms it within ten minutes.

Tools that read:
${namesOf(READS)}

Tools that buy, with --allow-writes:
${namesOf(TOOLS.filter(isWriteTool))}`,
  options: { 'allow-writes': { type: 'boolean', help: 'offer the tools that place orders and top-ups' } },
  examples: [
    { command: 'esim mcp', says: 'the command for the settings of your assistant' },
    { command: 'esim mcp --allow-writes', says: 'allow orders in the Sandbox' },
  ],
  run: async (context, options) => {
    const writes = options.flag('allow-writes');
    const api = writes ? context.writableApi : context.api;
    const tools = writes ? TOOLS : READS;
    try {
      await new McpServer(api, tools).serve(process.stdin, process.stdout, context.signal);
    } finally {
      // An open stdin would keep the program running.
      process.stdin.destroy();
    }
    return EXIT.ok;
  },
};
