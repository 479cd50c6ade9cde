import { randomUUID } from 'node:crypto';
import { type Agent, request } from 'node:http';
import { undocumented } from './documented-answers.js';

export interface ApiAnswer {
  readonly status: number;
  readonly headers: Headers;
  /** The exact text of the body. */
  readonly text: string;
  // Tests read responses of many shapes. The OpenAPI fuzz test checks the shapes themselves.
  // eslint-disable-next-line @typescript-eslint/no-explicit-any
  readonly body: any;
}

export interface CallOptions {
  readonly body?: unknown;
  readonly headers?: Record<string, string>;
  /** POSTs get a new key by default. Null sends none. */
  readonly idempotencyKey?: string | null;
}

/** Calls one port with one bearer token. Every success must match the OpenAPI document, without extra fields. */
export class HttpClient {
  constructor(
    readonly baseUrl: string,
    private readonly token: string | null,
  ) {}

  get(path: string, headers: Record<string, string> = {}): Promise<ApiAnswer> {
    return this.call('GET', path, { headers });
  }

  post(path: string, body?: unknown, options: Omit<CallOptions, 'body'> = {}): Promise<ApiAnswer> {
    return this.call('POST', path, { ...options, body });
  }

  async call(method: string, path: string, options: CallOptions = {}): Promise<ApiAnswer> {
    const headers: Record<string, string> = { ...options.headers };
    if (this.token !== null) headers['authorization'] ??= `Bearer ${this.token}`;
    if (options.body !== undefined) headers['content-type'] ??= 'application/json';
    if (method === 'POST' && options.idempotencyKey !== null) {
      headers['idempotency-key'] ??= options.idempotencyKey ?? randomUUID();
    }
    const response = await fetch(this.baseUrl + path, {
      method,
      headers,
      redirect: 'manual',
      ...(options.body === undefined
        ? {}
        : { body: typeof options.body === 'string' ? options.body : JSON.stringify(options.body) }),
    });
    const text = await response.text();
    const answer = { status: response.status, headers: response.headers, text, body: parse(text) };
    const fault = undocumented(method, path, answer);
    if (fault !== null) throw new Error(`${fault}\n${text.slice(0, 1_000)}`);
    return answer;
  }
}

/** The status of a GET on connections of `agent`, because `fetch` shares one pool per process. */
export function statusOver(agent: Agent, url: string, headers: Record<string, string>): Promise<number> {
  return new Promise((resolve, reject) => {
    request(url, { agent, headers }, (response) => {
      response.resume().on('end', () => resolve(response.statusCode ?? 0));
    })
      .on('error', reject)
      .end();
  });
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
