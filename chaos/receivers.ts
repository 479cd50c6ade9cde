import { createHmac } from 'node:crypto';
import { once } from 'node:events';
import { createServer, type IncomingHttpHeaders, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';

/** A receiver's behavior until the storm is over. */
export type Behavior = 'good' | 'slow' | 'failing' | 'hanging' | 'resetting' | 'flapping' | 'lying';

export const TROUBLES: readonly Behavior[] = ['slow', 'failing', 'hanging', 'resetting', 'flapping', 'lying'];

const SLOW_MS = 500;
const FLAP_EVERY_MS = 3_000;
let lies = 0;

const BEHAVIORS: Record<Behavior, (response: ServerResponse) => void> = {
  good: (response) => void response.writeHead(200).end(),
  slow: (response) => void setTimeout(() => response.writeHead(200).end(), SLOW_MS),
  failing: (response) => void response.writeHead(500).end(),
  hanging: () => undefined,
  resetting: (response) => response.socket?.resetAndDestroy(),
  flapping: (response) => {
    const isUp = Math.floor(performance.now() / FLAP_EVERY_MS) % 2 === 0;
    response.writeHead(isUp ? 200 : 500).end();
  },
  lying: (response) => LIES[lies++ % LIES.length]!(response),
};

/**
 * Broken responses: an endless body, a redirect, an invalid status line, an unfinished chunked body, a wrong length.
 */
const LIES: readonly ((response: ServerResponse) => void)[] = [
  (response) => void response.writeHead(200, { 'content-length': '1000000' }).write('half'),
  (response) => void response.writeHead(302, { location: 'http://169.254.169.254/' }).end(),
  (response) => void response.socket?.end('HTTP/1.1 2OO fine\r\n\r\n'),
  (response) => void response.writeHead(200, { 'transfer-encoding': 'chunked' }).write('x'),
  (response) => void response.socket?.end('HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nmuch more than that'),
];

/** A receiver that counts events and verifies every signature independently. */
export class Receiver {
  /** Number of requests by event id and by delivery id, whatever the response was. */
  readonly events = new Map<string, number>();
  readonly deliveries = new Map<string, number>();
  badSignatures = 0;
  /** Number of repetitions with another delivery id or another body. */
  changed = 0;
  /** Maximum number of requests open at once. */
  mostOpen = 0;
  private open = 0;
  private readonly first = new Map<string, string>();
  /** Set once the endpoint is registered. */
  secret = '';
  private isCalm = false;

  private constructor(
    private readonly server: Server,
    readonly behavior: Behavior,
  ) {}

  static async start(behavior: Behavior): Promise<Receiver> {
    const server = createServer();
    const receiver = new Receiver(server, behavior);
    server.on('request', (request, response) => {
      void text(request).then(
        (body) => {
          receiver.note(request.headers, body);
          receiver.mostOpen = Math.max(receiver.mostOpen, ++receiver.open);
          response.once('close', () => receiver.open--);
          BEHAVIORS[receiver.isCalm ? 'good' : behavior](response);
        },
        () => undefined,
      );
    });
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    return receiver;
  }

  get url(): string {
    return `http://127.0.0.1:${(this.server.address() as AddressInfo).port}/hook`;
  }

  get received(): number {
    return [...this.events.values()].reduce((sum, times) => sum + times, 0);
  }

  /** From now on the receiver is good. */
  calmDown(): void {
    this.isCalm = true;
  }

  async stop(): Promise<void> {
    this.server.close();
    this.server.closeAllConnections();
    await Promise.resolve();
  }

  private note(headers: IncomingHttpHeaders, body: string): void {
    const { id } = JSON.parse(body) as { id: string };
    const delivery = String(headers['x-service-delivery']);
    this.events.set(id, (this.events.get(id) ?? 0) + 1);
    this.deliveries.set(delivery, (this.deliveries.get(delivery) ?? 0) + 1);
    const sent = `${delivery} ${body}`;
    if ((this.first.get(id) ?? sent) !== sent) this.changed++;
    this.first.set(id, sent);
    const [, t, v1] = /^t=(\d+),v1=([0-9a-f]{64})$/.exec(String(headers['x-service-signature'])) ?? [];
    const expected = createHmac('sha256', this.secret).update(`${t}.${body}`).digest('hex');
    // The bed sets the secret after registration, before the first order.
    if (expected !== v1) this.badSignatures++;
  }
}
