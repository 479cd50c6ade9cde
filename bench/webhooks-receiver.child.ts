import { once } from 'node:events';
import { type AddressInfo, createServer, type Socket } from 'node:net';
import { serveParent } from './shared/child.js';
import { machineNowMs } from './shared/machine.js';

const HEAD_END = '\r\n\r\n';
const ICCID = '"iccid":"';
const ANSWER = 'HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n';

/** Requests to one endpoint since `reset`. Times come from `machineNowMs`. */
interface Seen {
  requests: number;
  connections: number;
  firstAtMs: number;
  lastAtMs: number;
}

export interface Counts {
  /** By endpoint. */
  readonly seen: readonly Seen[];
  /** Distinct events that arrived at the watched endpoints. `duplicates` counts repetitions. */
  readonly arrived: number;
  readonly duplicates: number;
}

let seen: Seen[] = [];
let arrivals = new Map<number, number>();
let duplicates = 0;
let watched = new Set<number>();

const api = {
  /**
   * Listens on one port per endpoint, because in production every partner has its own host.
   * @returns the ports
   */
  listen: (count: number) => Promise.all(Array.from({ length: count }, (_, index) => listen(index))),
  /** Starts recording each event's first arrival at these endpoints, and discards earlier recordings. */
  watch: (endpoints: readonly number[]) => {
    watched = new Set(endpoints);
    arrivals = new Map();
    duplicates = 0;
    return Promise.resolve();
  },
  reset: () => {
    seen = seen.map(nothingSeen);
    return Promise.resolve();
  },
  counts: (): Promise<Counts> => Promise.resolve({ seen, arrived: arrivals.size, duplicates }),
  /** Each event's number and first arrival. */
  arrivals: () => Promise.resolve([...arrivals]),
};
export type ReceiverApi = typeof api;
serveParent(api);

async function listen(index: number): Promise<number> {
  seen[index] = nothingSeen();
  const server = createServer((socket) => receive(socket, index));
  server.listen({ port: 0, host: '127.0.0.1', backlog: 1_024 });
  await once(server, 'listening');
  return (server.address() as AddressInfo).port;
}

/** Responds with 200 at once. It avoids an HTTP server because the receiver shares its cores with the worker. */
function receive(socket: Socket, index: number): void {
  let unread: Buffer | null = null;
  let firstByteAtMs = 0;
  seen[index]!.connections++;
  socket.setNoDelay(true);
  // A killed sender resets its connections.
  socket.on('error', () => undefined);
  socket.on('data', (chunk: Buffer) => {
    if (unread === null) firstByteAtMs = machineNowMs();
    const bytes = unread ? Buffer.concat([unread, chunk]) : chunk;
    const body = bodyOf(bytes);
    unread = body ? null : bytes;
    if (body === null) return;
    take(index, body, firstByteAtMs);
    socket.write(ANSWER);
  });
}

/** @returns the body if it is complete. Senders do not pipeline. */
function bodyOf(bytes: Buffer): Buffer | null {
  const end = bytes.indexOf(HEAD_END);
  if (end < 0) return null;
  const length = /\r\ncontent-length: (\d+)/i.exec(bytes.toString('latin1', 0, end))?.[1];
  if (length === undefined) throw new Error('a request without Content-Length');
  const body = bytes.subarray(end + HEAD_END.length);
  return body.length >= Number(length) ? body : null;
}

function take(index: number, body: Buffer, atMs: number): void {
  const endpoint = seen[index]!;
  if (endpoint.requests++ === 0) endpoint.firstAtMs = atMs;
  endpoint.lastAtMs = atMs;
  if (!watched.has(index)) return;
  const number = numberOfBody(body);
  if (arrivals.has(number)) duplicates++;
  else arrivals.set(number, atMs);
}

/**
 * @returns the event's number, which is its ICCID
 * @throws Error when the body has none
 */
function numberOfBody(body: Buffer): number {
  const at = body.indexOf(ICCID);
  if (at < 0) throw new Error('a webhook without a number');
  return Number(body.toString('latin1', at + ICCID.length, at + ICCID.length + 19));
}

function nothingSeen(): Seen {
  return { requests: 0, connections: 0, firstAtMs: 0, lastAtMs: 0 };
}
