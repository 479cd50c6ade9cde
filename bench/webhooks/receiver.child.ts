import { once } from 'node:events';
import { type AddressInfo, createServer } from 'node:net';
import { answerParent } from '../child-link.js';
import { machineNowMs } from './machine-clock.js';
import { ReceivingConnection } from './receiving-connection.js';
import { numberOfBody } from './numbered-events.js';
import type { ReceiverAnswer, ReceiverQuestion, Seen } from './receiver.js';

let seen: Seen[] = [];
let arrivals = new Map<number, number>();
let duplicates = 0;
let watched = new Set<number>();
let hanging = new Set<number>();
const hung = new Set<ReceivingConnection>();

/** One port per endpoint, as every partner has a host of its own; answers 200 at once, or not at all. */
answerParent<ReceiverQuestion, ReceiverAnswer>(async (question) => {
  switch (question.do) {
    case 'listen':
      return {
        ports: await Promise.all(Array.from({ length: question.count }, (_, index) => listen(index))),
      };
    case 'watch':
      watched = new Set(question.endpoints);
      arrivals = new Map();
      duplicates = 0;
      return {};
    case 'reset':
      seen = seen.map(nothingSeen);
      return {};
    case 'hang':
      hanging = new Set(question.endpoints);
      for (const connection of hung) connection.answer();
      hung.clear();
      return {};
    case 'count':
      return { seen, arrived: arrivals.size, duplicates };
    case 'arrivals':
      return { arrivals: [...arrivals] };
  }
});

async function listen(index: number): Promise<number> {
  seen[index] = nothingSeen();
  const server = createServer((socket) => {
    seen[index]!.connections++;
    new ReceivingConnection(socket, machineNowMs, (body, atMs, own) => take(index, body, atMs, own));
  });
  server.listen({ port: 0, host: '127.0.0.1', backlog: 1_024 });
  await once(server, 'listening');
  return (server.address() as AddressInfo).port;
}

/** True when the request is to be answered now. */
function take(index: number, body: Buffer, atMs: number, connection: ReceivingConnection): boolean {
  if (hanging.has(index)) {
    hung.add(connection);
    return false;
  }
  const endpoint = seen[index]!;
  if (endpoint.requests++ === 0) endpoint.firstAtMs = atMs;
  endpoint.lastAtMs = atMs;
  if (watched.has(index)) note(numberOfBody(body), atMs);
  return true;
}

function note(number: number, atMs: number): void {
  if (arrivals.has(number)) duplicates++;
  else arrivals.set(number, atMs);
}

function nothingSeen(): Seen {
  return { requests: 0, connections: 0, firstAtMs: 0, lastAtMs: 0 };
}
