import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';

/**
 * Fate of a call's response: it arrives, never arrives, is cut off, or is cut off and the service becomes unreachable.
 */
export type Fate = 'answered' | 'held' | 'cut' | 'cut, then gone';

export interface CallHolder {
  readonly url: string;
  /** Calls whose response was held back, e.g. `POST /v1/orders`. */
  readonly kept: readonly string[];
  /** The Authorization header of every call. */
  readonly authorizations: readonly string[];
  close(): Promise<void>;
}

/** A proxy to the service. Every call reaches the service, and `fate` decides about its response. */
export async function startCallHolder(
  target: string,
  fateOf: (call: string) => Fate | Promise<Fate>,
): Promise<CallHolder> {
  const kept: string[] = [];
  const authorizations: string[] = [];
  const server = createServer((incoming, outgoing) => {
    pass(incoming, outgoing).catch(() => outgoing.destroy());
  });
  const pass = async (incoming: IncomingMessage, outgoing: ServerResponse): Promise<void> => {
    const call = `${incoming.method} ${incoming.url}`;
    authorizations.push(incoming.headers.authorization ?? '');
    const { status, body } = await forward(target, incoming);
    const fate = await fateOf(call);
    if (fate === 'answered')
      return void outgoing.writeHead(status, { 'content-type': 'application/json' }).end(body);
    kept.push(call);
    if (fate === 'cut, then gone') server.close();
    if (fate !== 'held') incoming.socket.resetAndDestroy();
  };
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    kept,
    authorizations,
    close: async () => {
      server.closeAllConnections();
      if (server.listening) await new Promise((resolve) => server.close(resolve));
    },
  };
}

async function forward(target: string, incoming: IncomingMessage): Promise<{ status: number; body: string }> {
  const { authorization = '', 'idempotency-key': key, 'content-type': type } = incoming.headers;
  const sent = await text(incoming);
  const answer = await fetch(`${target}${incoming.url}`, {
    method: incoming.method ?? 'GET',
    headers: {
      authorization,
      ...(key === undefined ? {} : { 'idempotency-key': String(key) }),
      ...(type === undefined ? {} : { 'content-type': type }),
    },
    ...(sent === '' ? {} : { body: sent }),
  });
  return { status: answer.status, body: await answer.text() };
}
