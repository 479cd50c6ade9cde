import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';
import { Agent, request } from 'undici';
import type { Cleanups } from './child.js';

const TIMEOUT_MS = 30_000;
const agent = new Agent({ connections: 128, headersTimeout: TIMEOUT_MS, bodyTimeout: TIMEOUT_MS });

export const ORDERS_PATH = '/v1/orders';
export const PACKAGE = 'pkg_fr_1gb_7d';
export const ORDER = { package_id: PACKAGE, quantity: 1 };

export interface Answer {
  readonly status: number;
  readonly text: string;
}

/** Sends a GET, or a POST with a new Idempotency-Key if there is a body. Does not throw for error statuses. */
export async function send(
  url: string,
  token: string | null,
  body?: object,
  headers: Readonly<Record<string, string>> = {},
): Promise<Answer> {
  const answer = await request(url, {
    method: body === undefined ? 'GET' : 'POST',
    headers: {
      ...(token === null ? {} : { authorization: `Bearer ${token}` }),
      ...(body === undefined ? {} : { 'content-type': 'application/json', 'idempotency-key': randomUUID() }),
      ...headers,
    },
    body: body === undefined ? null : JSON.stringify(body),
    dispatcher: agent,
  });
  return { status: answer.statusCode, text: await answer.body.text() };
}

/**
 * Like `send`, but parses the body.
 * @throws Error for a status of 300 or higher
 */
export async function sendOk<Body = unknown>(...args: Parameters<typeof send>): Promise<Body> {
  const { status, text } = await send(...args);
  if (status >= 300) throw new Error(`${new URL(args[0]).pathname}: ${status} ${text.slice(0, 200)}`);
  return JSON.parse(text) as Body;
}

/** @returns the HTTP status of a refusal, or the error code of a failed connection */
export function kindOf(error: unknown): string {
  const { code, message } = error as NodeJS.ErrnoException;
  return code ?? /: (\d{3}) /.exec(message)?.[1] ?? message.slice(0, 60);
}

/**
 * Starts a webhook endpoint on loopback that responds with 200 at once.
 * @returns its URL
 */
export async function startReceiver(
  cleanups: Cleanups,
  take?: (body: string, atMs: number) => void,
): Promise<string> {
  const server = createServer((message, response) => {
    const atMs = performance.now();
    void text(message).then((body) => {
      response.writeHead(200).end();
      take?.(body, atMs);
    });
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  cleanups.stopping({
    stop: () => {
      server.close();
      server.closeAllConnections();
      return Promise.resolve();
    },
  });
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}/hook`;
}
