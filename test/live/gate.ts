import { once } from 'node:events';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { buffer } from 'node:stream/consumers';
import type { Act, Upstream } from './upstream.js';

/** Where a call with side effects waits: before it reaches the provider, or after the provider has executed it. */
export type Hold = 'request' | 'answer';

/** A proxy to a provider that forwards everything, and holds calls with side effects on request. */
export class Gate {
  /** The calls that are held now. */
  readonly waiting: Act[] = [];
  private hold: Hold | null = null;
  private only: Act | null = null;
  private readonly held: ServerResponse[] = [];

  private constructor(
    private readonly upstream: Upstream,
    private readonly server: Server,
  ) {}

  static async open(upstream: Upstream): Promise<Gate> {
    const server = createServer();
    const gate = new Gate(upstream, server);
    server.on('request', (request, response) => {
      gate.pass(request, response).catch(() => response.destroy());
    });
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    return gate;
  }

  /** The provider's base URL for the service. */
  get url(): string {
    const { port } = this.server.address() as AddressInfo;
    return `http://127.0.0.1:${port}${new URL(this.upstream.url).pathname.replace(/\/$/, '')}`;
  }

  /** Holds calls from now on: of one act, or of all. */
  close(hold: Hold, only: Act | null = null): void {
    this.hold = hold;
    this.only = only;
  }

  /** Stops holding calls. Held calls are cut off, because their sender is dead. */
  reopen(): void {
    this.hold = null;
    this.waiting.length = 0;
    for (const response of this.held.splice(0)) response.destroy();
  }

  async shutDown(): Promise<void> {
    this.reopen();
    this.server.close();
    this.server.closeAllConnections();
    await Promise.resolve();
  }

  private async pass(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const body = await buffer(request);
    const { method = 'GET', url = '/' } = request;
    const seen = this.upstream.actOf(method, url.split('?')[0]!, body.toString());
    const act = this.only === null || seen === this.only ? seen : null;
    if (act && this.hold === 'request') return this.keep(act, response);
    const { host: _host, connection: _connection, 'content-length': _length, ...headers } = request.headers;
    const answer = await fetch(new URL(url, this.upstream.url), {
      method,
      headers: headers as Record<string, string>,
      ...(method === 'GET' ? {} : { body }),
    });
    const text = await answer.text();
    if (act && this.hold === 'answer') return this.keep(act, response);
    response.writeHead(answer.status, { 'content-type': 'application/json' }).end(text);
  }

  private keep(act: Act, response: ServerResponse): void {
    this.waiting.push(act);
    this.held.push(response);
  }
}
