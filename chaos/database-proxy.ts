import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Server, type Socket } from 'node:net';

/** Which bytes the proxy drops: those to the server, those from it, or both. */
export type Lost = 'requests' | 'answers' | 'both';

/** One connection through the proxy. */
interface Pair {
  readonly client: Socket;
  readonly server: Socket;
  lost: Lost | null;
  /** Bytes of each chunk from the server that pass through; the rest is lost. null passes everything. */
  dripBytes: number | null;
}

/** A proxy between a service and PostgreSQL that simulates network faults on open connections. */
export class DatabaseProxy {
  private readonly pairs = new Set<Pair>();

  private constructor(
    private readonly listener: Server,
    private target: URL,
    /** URL of the same database through the proxy. */
    readonly url: string,
  ) {}

  static async start(databaseUrl: string): Promise<DatabaseProxy> {
    const listener = createServer({ allowHalfOpen: true }, (client) => proxy.forward(client)).listen(
      0,
      '127.0.0.1',
    );
    await once(listener, 'listening');
    const url = overTcp(databaseUrl);
    url.hostname = '127.0.0.1';
    url.port = String((listener.address() as AddressInfo).port);
    const proxy = new DatabaseProxy(listener, overTcp(databaseUrl), url.href);
    return proxy;
  }

  /** Number of open connections. */
  get open(): number {
    return [...this.pairs].filter(({ client }) => !client.destroyed).length;
  }

  /** Drops all further bytes of the open connections without closing them. New connections work. */
  swallow(lost: Lost = 'both'): void {
    for (const pair of this.pairs) pair.lost = lost;
  }

  /** From now on, cuts each response chunk of the open connections to this many bytes. */
  drip(bytes: number): void {
    for (const pair of this.pairs) pair.dripBytes = bytes;
  }

  /** Resets every open connection at both ends. */
  reset(): void {
    for (const { client, server } of this.pairs) {
      client.resetAndDestroy();
      server.resetAndDestroy();
    }
  }

  /** Sends these bytes to the clients as if they came from the server. */
  inject(bytes: Buffer): void {
    for (const { client } of this.pairs) client.write(bytes);
  }

  /** Routes new connections to this server. */
  leadTo(databaseUrl: string): void {
    this.target = overTcp(databaseUrl);
  }

  async stop(): Promise<void> {
    for (const { client, server } of this.pairs) {
      client.destroy();
      server.destroy();
    }
    this.listener.close();
    await once(this.listener, 'close');
  }

  private forward(client: Socket): void {
    const server = connect(Number(this.target.port), this.target.hostname);
    const pair: Pair = { client, server, lost: null, dripBytes: null };
    this.pairs.add(pair);
    for (const socket of [client, server]) socket.on('error', () => undefined).setNoDelay(true);
    // While packets are lost, neither end learns that the other closed the connection.
    client.on('end', () => void (pair.lost === null && client.end()));
    const closed = (other: Socket): void => {
      if (pair.lost === null) other.destroy();
      if (client.destroyed && server.destroyed) this.pairs.delete(pair);
    };
    client.on('close', () => closed(server));
    server.on('close', () => closed(client));
    client.on('data', (bytes) => {
      if (pair.lost === null || pair.lost === 'answers') server.write(bytes);
    });
    server.on('data', (bytes) => {
      if (pair.lost !== null && pair.lost !== 'requests') return;
      client.write(pair.dripBytes === null ? bytes : bytes.subarray(0, pair.dripBytes));
    });
  }
}

function overTcp(databaseUrl: string): URL {
  const url = new URL(databaseUrl);
  url.searchParams.delete('host');
  return url;
}
