import { createInterface } from 'node:readline';
import type { Readable, Writable } from 'node:stream';
import type { PartnerApi } from '../partner-api.js';
import { printableJson } from '../terminal/printable.js';
import { VERSION } from '../version.js';
import type { Tool } from './tools.js';

/** Supported revisions of the Model Context Protocol. The first one applies if the client requests an unknown one. */
const PROTOCOL_VERSIONS = ['2025-06-18', '2025-03-26', '2024-11-05'] as const;

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
  constructor(
    private readonly api: PartnerApi,
    private readonly tools: readonly Tool[],
  ) {}

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
          serverInfo: { name: 'partner-esim', version: VERSION },
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
      const result = await tool.run(this.api, (params['arguments'] ?? {}) as Record<string, unknown>);
      return { content: [{ type: 'text', text: JSON.stringify(result) }] };
    } catch (error) {
      return { content: [{ type: 'text', text: (error as Error).message }], isError: true };
    }
  }
}

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

function describe({ name, description, writes, properties, required = [] }: Tool): object {
  return {
    name,
    description,
    inputSchema: { type: 'object', properties, required, additionalProperties: false },
    annotations: {
      readOnlyHint: !writes,
      destructiveHint: writes,
      idempotentHint: true,
      openWorldHint: false,
    },
  };
}
