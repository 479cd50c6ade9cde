import { once } from 'node:events';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';

interface OrderEvent {
  readonly type: string;
  readonly data: { readonly order_id: string };
}

/** A webhook endpoint that answers 200 at once and knows when each order's `order.issued` came. */
export class OrderReceiver {
  private readonly arrivedAtMs = new Map<string, number>();
  private readonly waiting = new Map<string, (atMs: number) => void>();

  private constructor(private readonly server: Server) {}

  static async start(): Promise<OrderReceiver> {
    const server = createServer((request, response) => {
      const atMs = performance.now();
      void text(request).then((body) => {
        response.writeHead(200).end();
        receiver.take(JSON.parse(body) as OrderEvent, atMs);
      });
    });
    const receiver = new OrderReceiver(server);
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    return receiver;
  }

  get url(): string {
    return `http://127.0.0.1:${(this.server.address() as AddressInfo).port}/hook`;
  }

  /** When the order's event arrived. @throws Error when it does not */
  issuedAtMs(orderId: string, patienceMs: number): Promise<number> {
    const arrived = this.arrivedAtMs.get(orderId);
    if (arrived !== undefined) return Promise.resolve(arrived);
    return new Promise((resolve, reject) => {
      const timer = setTimeout(() => reject(new Error(`no order.issued for ${orderId}`)), patienceMs);
      this.waiting.set(orderId, (atMs) => {
        clearTimeout(timer);
        resolve(atMs);
      });
    });
  }

  stop(): Promise<void> {
    this.server.close();
    this.server.closeAllConnections();
    return Promise.resolve();
  }

  private take({ type, data }: OrderEvent, atMs: number): void {
    if (type !== 'order.issued') return;
    this.arrivedAtMs.set(data.order_id, atMs);
    this.waiting.get(data.order_id)?.(atMs);
    this.waiting.delete(data.order_id);
  }
}
