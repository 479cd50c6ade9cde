import type { Command } from '../command.js';
import { EXIT } from '../exit-codes.js';
import { McpServer } from '../mcp/server.js';
import { TOOLS } from '../mcp/tools.js';

export const mcp: Command = {
  name: 'mcp',
  summary: 'serve the API to an assistant over stdio (Model Context Protocol), read-only',
  details: `Offers ${TOOLS.filter(({ writes }) => !writes)
    .map(({ name }) => name)
    .join(', ')}; with --allow-writes also ${TOOLS.filter(({ writes }) => writes)
    .map(({ name }) => name)
    .join(
      ' and ',
    )}. A Live key writes only with --live as well. No tool shows what an eSIM is installed with.`,
  options: { 'allow-writes': { type: 'boolean', help: 'offer the tools that buy' } },
  examples: [
    { command: 'esim mcp', says: 'the command to put into an assistant’s settings' },
    { command: 'esim mcp --allow-writes', says: 'may order in the Sandbox' },
  ],
  run: async (context, options) => {
    const writes = options.flag('allow-writes');
    const api = writes ? context.writableApi : context.api;
    const tools = TOOLS.filter((tool) => writes || !tool.writes);
    try {
      await new McpServer(api, tools).serve(process.stdin, process.stdout, context.signal);
    } finally {
      // An open stdin would hold the program.
      process.stdin.destroy();
    }
    return EXIT.ok;
  },
};
