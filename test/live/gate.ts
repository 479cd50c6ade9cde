import { once } from 'node:events';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { buffer } from 'node:stream/consumers';
import type { Act, Upstream } from './upstream.js';

/** Where a call of consequence waits: before it reaches the provider, or after the provider has done it. */
export type Hold = 'request' | 'answer';

/** Stands between the service and a provider, passes everything on, and holds acts up when it is told to. */
export class Gate {
  /** The acts that wait here now. */
  readonly waiting: Act[] = [];
  private hold: Hold | null = null;
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

  /** As the base URL of the provider. */
  get url(): string {
    const { port } = this.server.address() as AddressInfo;
    return `http://127.0.0.1:${port}${new URL(this.upstream.url).pathname.replace(/\/$/, '')}`;
  }

  /** From now on acts wait here. */
  close(hold: Hold): void {
    this.hold = hold;
  }

  /** Nothing waits any more; what has waited is cut: who sent it is dead. */
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
    const act = this.upstream.actOf(method, url.split('?')[0]!, body.toString());
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
