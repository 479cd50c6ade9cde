import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import type { ApiAnswer } from './http-client.js';

export interface RawRequest {
  readonly method?: string;
  readonly path: string;
  /** Header lines in sending order. A name may repeat. */
  readonly headers: readonly (readonly [string, string])[];
  readonly body?: string | Buffer;
}

/** One exchange over a raw socket, for heads and bodies that fetch would not send. */
export async function rawRequest(baseUrl: string, request: RawRequest): Promise<ApiAnswer> {
  const { hostname, port, host } = new URL(baseUrl);
  const socket = connect(Number(port), hostname);
  await once(socket, 'connect');
  const headers = [['Host', host], ...request.headers].map(([name, value]) => `${name}: ${value}\r\n`);
  socket.write(`${request.method ?? 'GET'} ${request.path} HTTP/1.1\r\n${headers.join('')}\r\n`);
  if (request.body !== undefined) socket.write(request.body);
  try {
    return await readAnswer(socket, request.method === 'HEAD');
  } finally {
    socket.destroy();
  }
}

/** Reads the announced length, because the server may keep the connection open. */
async function readAnswer(socket: Socket, headOnly: boolean): Promise<ApiAnswer> {
  let received = '';
  for await (const chunk of socket as AsyncIterable<Buffer>) {
    received += chunk.toString('latin1');
    const answer = parseAnswer(received, headOnly);
    if (answer) return answer;
  }
  throw new Error(`the connection ended after: ${JSON.stringify(received)}`);
}

function parseAnswer(received: string, headOnly: boolean): ApiAnswer | null {
  const headEnd = received.indexOf('\r\n\r\n');
  if (headEnd < 0) return null;
  const [statusLine = '', ...lines] = received.slice(0, headEnd).split('\r\n');
  const headers = new Headers(lines.map((line): [string, string] => split(line)));
  const body = received.slice(headEnd + 4);
  if (!headOnly && body.length < Number(headers.get('content-length') ?? 0)) return null;
  const status = Number(statusLine.split(' ')[1]);
  return { status, headers, text: body, body: body.startsWith('{') ? JSON.parse(body) : undefined };
}

function split(line: string): [string, string] {
  const colon = line.indexOf(':');
  return [line.slice(0, colon), line.slice(colon + 1).trim()];
}
