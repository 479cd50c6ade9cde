import { connect, type Socket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Problem } from '../../../src/common/errors/index.js';
import { eventually } from '../../harness/eventually.js';

export interface Answer {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
  readonly problem: Problem;
}

/** A socket that collects what the server sends. */
export class RawClient {
  private received = '';
  private hungUp = false;
  /** Responses to HEAD have a length but no body. */
  private headOnly = false;
  readonly socket: Socket;

  constructor(port: number) {
    this.socket = connect({ port, host: '127.0.0.1', allowHalfOpen: true });
    this.socket.on('data', (chunk) => (this.received += chunk.toString('latin1')));
    this.socket.on('error', () => undefined);
    this.socket.on('end', () => (this.hungUp = true));
    this.socket.on('close', () => (this.hungUp = true));
  }

  write(bytes: string | Buffer): this {
    if (bytes.toString('latin1', 0, 5) === 'HEAD ') this.headOnly = true;
    this.socket.write(typeof bytes === 'string' ? Buffer.from(bytes, 'latin1') : bytes);
    return this;
  }

  get isClosed(): boolean {
    return this.hungUp;
  }

  get text(): string {
    return this.received;
  }

  /** Waits for `count` complete responses, and fails when the server hangs up earlier. */
  async answers(count: number, timeoutMs = 30_000): Promise<Answer[]> {
    const deadline = Date.now() + timeoutMs;
    for (;;) {
      const answers = parseAnswers(this.received, this.headOnly);
      if (answers.length >= count) return answers;
      if (this.hungUp || Date.now() > deadline) {
        throw new Error(`got ${answers.length} of ${count} answers: ${JSON.stringify(this.received)}`);
      }
      await sleep(5);
    }
  }

  async answer(timeoutMs?: number): Promise<Answer> {
    const [first] = await this.answers(1, timeoutMs);
    return first!;
  }

  async closed(timeoutMs = 30_000): Promise<void> {
    const deadline = Date.now() + timeoutMs;
    while (!this.hungUp) {
      if (Date.now() > deadline) throw new Error('the server keeps the connection open');
      await sleep(5);
    }
  }

  destroy(): void {
    this.socket.destroy();
  }
}

function parseAnswers(text: string, headOnly: boolean): Answer[] {
  const answers: Answer[] = [];
  for (let rest = text; rest !== '';) {
    const headEnd = rest.indexOf('\r\n\r\n');
    if (headEnd < 0) break;
    const [statusLine = '', ...lines] = rest.slice(0, headEnd).split('\r\n');
    const status = Number(statusLine.split(' ')[1]);
    const headers = Object.fromEntries(
      lines.map((line) => [
        line.slice(0, line.indexOf(':')).toLowerCase(),
        line.slice(line.indexOf(':') + 1).trim(),
      ]),
    ) as Record<string, string>;
    const length = headOnly ? 0 : Number(headers['content-length'] ?? 0);
    const body = rest.slice(headEnd + 4, headEnd + 4 + length);
    if (body.length < length) break;
    rest = rest.slice(headEnd + 4 + length);
    if (status === 100) continue;
    answers.push({
      status,
      headers,
      body,
      problem: (body.startsWith('{') ? JSON.parse(body) : null) as Problem,
    });
  }
  return answers;
}

/** One raw exchange: sends the bytes and returns the first response. */
export async function exchange(port: number, bytes: string | Buffer): Promise<Answer> {
  const client = new RawClient(port).write(bytes);
  try {
    return await client.answer();
  } finally {
    client.destroy();
  }
}

export interface RequestParts {
  readonly method?: string;
  readonly path?: string;
  readonly version?: string;
  /** `null` omits a default header. */
  readonly headers?: Readonly<Record<string, string | readonly string[] | null>>;
  readonly body?: string | Buffer;
}

/** The bytes of a valid request with the given changes. */
export function request(parts: RequestParts = {}): Buffer {
  const { method = 'GET', path = '/v1/things', version = 'HTTP/1.1', body = '' } = parts;
  const headers: Record<string, string | readonly string[] | null> = {
    host: 'partner.test',
    authorization: 'Bearer good',
    ...(body.length > 0 ? { 'content-type': 'application/json' } : {}),
    ...(body.length > 0 ? { 'content-length': String(Buffer.byteLength(body)) } : {}),
    ...parts.headers,
  };
  const lines = Object.entries(headers).flatMap(([name, value]) =>
    value === null ? [] : [value].flat().map((one) => `${name}: ${one}\r\n`),
  );
  const head = Buffer.from(`${method} ${path} ${version}\r\n${lines.join('')}\r\n`, 'latin1');
  return Buffer.concat([head, Buffer.from(body)]);
}

/** A POST with a valid key. */
export function post(body: string | Buffer, parts: RequestParts = {}): Buffer {
  const headers = { 'idempotency-key': 'key-12345678', ...parts.headers };
  return request({ method: 'POST', body, ...parts, headers });
}

export async function until(condition: () => boolean): Promise<void> {
  await eventually('a condition that holds', condition);
}
