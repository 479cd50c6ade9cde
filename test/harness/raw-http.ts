import { once } from 'node:events';
import { connect } from 'node:net';
import { text } from 'node:stream/consumers';
import type { ApiAnswer } from './http-client.js';

export interface RawRequest {
  readonly method?: string;
  readonly path: string;
  /** Lines as they are sent, in order; a name may repeat. */
  readonly headers: readonly (readonly [string, string])[];
  readonly body?: string | Buffer;
}

/** One exchange over a bare socket, for heads and bodies that fetch would not send. */
export async function rawRequest(baseUrl: string, request: RawRequest): Promise<ApiAnswer> {
  const { hostname, port, host } = new URL(baseUrl);
  const socket = connect(Number(port), hostname);
  await once(socket, 'connect');
  const lines = [['Host', host], ['Connection', 'close'], ...request.headers].map(
    ([n, v]) => `${n}: ${v}\r\n`,
  );
  socket.write(`${request.method ?? 'GET'} ${request.path} HTTP/1.1\r\n${lines.join('')}\r\n`);
  if (request.body !== undefined) socket.write(request.body);
  return parseAnswer(await text(socket));
}

function parseAnswer(received: string): ApiAnswer {
  const [head = '', body = ''] = received.split('\r\n\r\n', 2);
  const [statusLine = '', ...lines] = head.split('\r\n');
  const headers = new Headers(
    lines.map((line): [string, string] => [
      line.slice(0, line.indexOf(':')),
      line.slice(line.indexOf(':') + 1).trim(),
    ]),
  );
  const status = Number(statusLine.split(' ')[1]);
  return { status, headers, text: body, body: body.startsWith('{') ? JSON.parse(body) : undefined };
}
