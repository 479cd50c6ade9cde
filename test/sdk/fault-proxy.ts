import { createServer, request, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { text } from 'node:stream/consumers';

/** Possible faults of a call on its way to the service, or of its response. */
export const FAULTS = [
  'none',
  'refused before the service',
  'answer cut after the commit',
  '503',
  '429 with Retry-After',
  'half a body',
  'slow drip',
  'gateway page',
] as const;
export type Fault = (typeof FAULTS)[number];

export interface FaultProxy {
  readonly url: string;
  /** How often each fault occurred. */
  readonly counts: Readonly<Record<Fault, number>>;
  close(): Promise<void>;
}

/** A call that the service has completed before the client knows. */
export interface AnsweredCall {
  readonly method: string;
  readonly idempotencyKey: string | null;
  readonly body: string;
}

export interface FaultOptions {
  readonly retryAfterSeconds?: number;
  /** Awaited before any of the response is sent back. */
  readonly answered?: (call: AnsweredCall) => Promise<void>;
}

/** A proxy between a client and the service that applies `faultOf` to each call. */
export async function startFaultProxy(
  target: string,
  faultOf: (call: string) => Fault,
  { retryAfterSeconds = 1, answered }: FaultOptions = {},
): Promise<FaultProxy> {
  const counts = Object.fromEntries(FAULTS.map((fault) => [fault, 0])) as Record<Fault, number>;
  const server: Server = createServer((incoming, outgoing) => {
    const fault = faultOf(`${incoming.method} ${incoming.url}`);
    counts[fault]++;
    pass(target, { fault, retryAfterSeconds, answered }, incoming, outgoing).catch(() => outgoing.destroy());
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    counts,
    close: async () => {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

interface Passing {
  readonly fault: Fault;
  readonly retryAfterSeconds: number;
  readonly answered: FaultOptions['answered'];
}

async function pass(
  target: string,
  { fault, retryAfterSeconds, answered }: Passing,
  incoming: IncomingMessage,
  outgoing: ServerResponse,
): Promise<void> {
  const sent = await text(incoming);
  if (fault === 'refused before the service') return void incoming.socket.resetAndDestroy();
  if (fault === '503') return problem(outgoing, 503, 'service_unavailable', {});
  if (fault === '429 with Retry-After')
    return problem(outgoing, 429, 'rate_limited', { 'retry-after': String(retryAfterSeconds) });
  if (fault === 'gateway page') return void outgoing.writeHead(502).end('<html>bad gateway</html>');
  const answer = await forward(target, incoming, sent);
  const idempotencyKey = String(incoming.headers['idempotency-key'] ?? '') || null;
  await answered?.({ method: incoming.method ?? '', idempotencyKey, body: sent });
  if (fault === 'answer cut after the commit') return void incoming.socket.resetAndDestroy();
  outgoing.writeHead(answer.status, answer.headers);
  if (fault === 'half a body') {
    outgoing.write(answer.body.slice(0, answer.body.length >> 1));
    await sleep(5);
    return void incoming.socket.resetAndDestroy();
  }
  if (fault === 'slow drip') {
    for (const char of answer.body.slice(0, 20)) {
      outgoing.write(char);
      await sleep(50);
    }
    return void outgoing.end(answer.body.slice(20));
  }
  outgoing.end(answer.body);
}

function problem(
  outgoing: ServerResponse,
  status: number,
  code: string,
  headers: Record<string, string>,
): void {
  const body = { type: 'x', title: 'x', status, code, detail: 'x', request_id: 'req_x', retryable: true };
  outgoing.writeHead(status, { 'content-type': 'application/problem+json', ...headers });
  outgoing.end(JSON.stringify(body));
}

interface Forwarded {
  readonly status: number;
  readonly headers: Record<string, string | string[] | undefined>;
  readonly body: string;
}

function forward(
  target: string,
  { method, url, headers }: IncomingMessage,
  body: string,
): Promise<Forwarded> {
  return new Promise((resolve, reject) => {
    const call = request(target + url, { method, headers }, (response) => {
      text(response).then(
        (answered) => resolve({ status: response.statusCode!, headers: response.headers, body: answered }),
        reject,
      );
    });
    call.on('error', reject);
    call.end(body);
  });
}
