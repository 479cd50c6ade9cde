import { createInterface } from 'node:readline';
import type { Readable, Writable } from 'node:stream';
import type { PartnerApi } from '../partner-api.js';
import { printableJson } from '../terminal/printable.js';
import { VERSION } from '../version.js';
import { Confirmations } from './confirmations.js';
import { type Arguments, checked, isWriteTool, propertiesOf, type Tool, type WriteTool } from './tools.js';

/** Supported revisions of the Model Context Protocol. The first one applies if the client requests an unknown one. */
const PROTOCOL_VERSIONS = ['2025-11-25', '2025-06-18', '2025-03-26', '2024-11-05'] as const;

const PARSE_ERROR = -32_700;
const INVALID_REQUEST = -32_600;
const METHOD_NOT_FOUND = -32_601;
const INVALID_PARAMS = -32_602;

interface Request {
  readonly jsonrpc?: unknown;
  readonly id?: string | number | null;
  readonly method?: unknown;
  readonly params?: Readonly<Record<string, unknown>>;
}

class RpcError extends Error {
  constructor(
    readonly code: number,
    message: string,
  ) {
    super(message);
  }
}

/** The Model Context Protocol: JSON-RPC over lines of stdin and stdout. Stdout must carry nothing else. */
export class McpServer {
  private readonly confirmations: Confirmations;

  constructor(
    private readonly api: PartnerApi,
    private readonly tools: readonly Tool[],
  ) {
    this.confirmations = new Confirmations(api);
  }

  /** Runs until `input` ends or the signal aborts. */
  async serve(input: Readable, output: Writable, signal: AbortSignal): Promise<void> {
    const lines = createInterface({ input, signal });
    for await (const line of lines) {
      if (line.trim() === '') continue;
      const answer = await this.answer(line);
      if (answer !== null) output.write(`${printableJson(answer)}\n`);
    }
  }

  /** @returns null for a notification, which gets no response */
  private async answer(line: string): Promise<object | null> {
    let id: Request['id'] = null;
    try {
      const request = parse(line);
      if (request.id === undefined) return null;
      id = request.id;
      return { jsonrpc: '2.0', id, result: await this.handle(request) };
    } catch (error) {
      const code = error instanceof RpcError ? error.code : INVALID_REQUEST;
      return { jsonrpc: '2.0', id, error: { code, message: (error as Error).message } };
    }
  }

  private async handle({ method, params = {} }: Request): Promise<unknown> {
    switch (method) {
      case 'initialize':
        return {
          protocolVersion:
            PROTOCOL_VERSIONS.find((known) => known === params['protocolVersion']) ?? PROTOCOL_VERSIONS[0],
          capabilities: { tools: {} },
          serverInfo: { name: 'partner-esim', title: 'Partner eSIM API', version: VERSION },
          instructions: INSTRUCTIONS,
        };
      case 'ping':
        return {};
      case 'tools/list':
        return { tools: this.tools.map(describe) };
      case 'tools/call':
        return this.call(params);
      default:
        throw new RpcError(
          METHOD_NOT_FOUND,
          `there is no method ${String(method)}. Use tools/list or tools/call.`,
        );
    }
  }

  /** An API error is a result that the model can read, not a protocol error. */
  private async call(params: Readonly<Record<string, unknown>>): Promise<unknown> {
    const tool = this.tools.find(({ name }) => name === params['name']);
    if (!tool)
      throw new RpcError(
        INVALID_PARAMS,
        `there is no tool ${String(params['name'])}. tools/list lists the tools.`,
      );
    try {
      const result = await this.run(tool, (params['arguments'] ?? {}) as Record<string, unknown>);
      return { content: [{ type: 'text', text: JSON.stringify(result) }], structuredContent: result };
    } catch (error) {
      return { content: [{ type: 'text', text: (error as Error).message }], isError: true };
    }
  }

  private async run(tool: Tool, given: Record<string, unknown>): Promise<object> {
    const args = checked(tool, given);
    return isWriteTool(tool) ? this.write(tool, args, given) : tool.run(this.api, args);
  }

  /** Previews a purchase, or makes it if the call has the token of the preview. */
  private async write(tool: WriteTool, args: Arguments, given: Record<string, unknown>): Promise<object> {
    const token = args.optionalText('confirm_token');
    if (token !== undefined) {
      const confirmed = this.confirmations.verify(token, tool.name, given);
      return { preview: null, [tool.buys]: await tool.buy(this.api, args, confirmed) };
    }
    const [{ mode }, preview] = await Promise.all([this.api.me(), tool.preview(this.api, args)]);
    const { unit_price: unit, quantity } = preview;
    return {
      preview: {
        mode,
        ...preview,
        total: { amount: unit.amount * quantity, currency: unit.currency },
        ...this.confirmations.issue(tool.name, given, unit),
        next_step: mode === 'live' ? PAID_STEP : FREE_STEP,
      },
      [tool.buys]: null,
    };
  }
}

const FREE_STEP =
  'Nothing has been bought. The Sandbox charges nothing. To go on, repeat the call with confirm_token.';
const PAID_STEP =
  'Nothing has been bought. This costs real money. Ask the person, and only if they agree, repeat the call with confirm_token.';

const INSTRUCTIONS =
  'Sell eSIMs: search the catalog, read orders, eSIMs, usage and events. Amounts are in minor units: 110 USD is 1.10 USD. ' +
  'No tool shows install data. A purchase needs two calls: the first returns a preview with its price, the second confirms it.';

function parse(line: string): Request {
  let request: unknown;
  try {
    request = JSON.parse(line);
  } catch {
    throw new RpcError(PARSE_ERROR, 'the line is not JSON. Send one JSON-RPC request per line.');
  }
  if (typeof request !== 'object' || request === null || (request as Request).jsonrpc !== '2.0') {
    throw new RpcError(INVALID_REQUEST, 'the line is not a JSON-RPC 2.0 request. Add "jsonrpc": "2.0".');
  }
  return request;
}

function describe(tool: Tool): object {
  const { name, title, description, required = [], output } = tool;
  const writes = isWriteTool(tool);
  return {
    name,
    title,
    description,
    inputSchema: { type: 'object', properties: propertiesOf(tool), required, additionalProperties: false },
    outputSchema: output,
    annotations: {
      title,
      readOnlyHint: !writes,
      // A purchase cannot be undone everywhere, so that clients should ask before it.
      destructiveHint: writes,
      // A repeated preview buys nothing, and a repeated confirmation buys nothing more.
      idempotentHint: true,
      openWorldHint: false,
    },
  };
}
