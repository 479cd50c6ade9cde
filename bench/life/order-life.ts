import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { createServer, type Server } from 'node:http';
import { type AddressInfo, connect, type Socket } from 'node:net';
import { text } from 'node:stream/consumers';
import { setTimeout as sleep } from 'node:timers/promises';
import { KeepAliveConnection } from '../load/keep-alive-connection.js';

/** Calls under way at once: one for each connection. */
const CONNECTIONS = 64;
const DRAIN_LIMIT_MS = 60_000;
/** Orders between POST and webhook of the closed loop: enough that nothing idles, few enough that nothing piles up. */
export const OPEN_ORDERS = 128;
/** Orders that are placed at once, until the last webhook. */
export const BURST = 100;

/** What came of a stretch of load. */
export interface LifeReport {
  /** Webhooks received a second, warm-up left out. */
  readonly perSecond: number;
  /** Milliseconds from the sending of each POST to the receipt of its `order.issued`. */
  readonly latencies: readonly number[];
  /** Orders whose webhook was still to come at the middle and at the end: a backlog that grows is no sustained rate. */
  readonly openAtHalf: number;
  readonly openAtEnd: number;
  /** Orders of the whole stretch, warm-up included: what the CPU time was spent on. */
  readonly inAll: number;
}

/** One partner's orders from POST to webhook; caller and receiver are this process. */
export class OrderLife {
  private readonly idle: KeepAliveConnection[] = [];
  private readonly sockets: Socket[] = [];
  private readonly unsent: string[] = [];
  private readonly sentAtMs = new Map<string, number>();
  private readonly received: { readonly atMs: number; readonly latencyMs: number }[] = [];
  private onReceived: () => void = () => undefined;

  private constructor(private readonly receiver: Server) {}

  static async start(): Promise<OrderLife> {
    const receiver = createServer((request, response) => {
      void text(request).then((body) => {
        response.writeHead(200).end();
        const { type, data } = JSON.parse(body) as { type: string; data: { reference: string } };
        if (type === 'order.issued') life.take(data.reference);
      });
    });
    const life = new OrderLife(receiver);
    receiver.listen(0, '127.0.0.1');
    await once(receiver, 'listening');
    return life;
  }

  get receiverUrl(): string {
    return `http://127.0.0.1:${(this.receiver.address() as AddressInfo).port}/hook`;
  }

  /** Opens the connections, as many to each API; right before a load, as an API closes those that stay without a call. */
  connect(apiUrls: readonly string[], key: string): void {
    this.requestHead =
      `POST /v1/orders HTTP/1.1\r\nHost: api\r\nAuthorization: Bearer ${key}\r\n` +
      'Content-Type: application/json\r\n';
    for (let i = 0; i < CONNECTIONS; i++) {
      const { hostname, port } = new URL(apiUrls[i % apiUrls.length]!);
      const socket = connect(Number(port), hostname);
      this.sockets.push(socket);
      const connection = new KeepAliveConnection(socket, (status) => {
        if (status !== 202) throw new Error(`POST /v1/orders: ${status}`);
        this.idle.push(connection);
        this.sendNext();
      });
      this.idle.push(connection);
    }
  }

  /** After a load, all of whose webhooks have come. */
  disconnect(): void {
    this.idle.length = 0;
    for (const socket of this.sockets.splice(0)) socket.destroy();
  }

  private requestHead = '';

  /** So many orders between POST and webhook at any time, the next as soon as one has come. */
  async runClosed(open: number, warmupMs: number, durationMs: number): Promise<LifeReport> {
    let isOver = false;
    this.onReceived = () => {
      if (!isOver) this.place();
    };
    for (let i = 0; i < open; i++) this.place();
    return this.measure(warmupMs, durationMs, () => (isOver = true));
  }

  /** So many orders a second, whatever became of those before. */
  async runOpen(perSecond: number, warmupMs: number, durationMs: number): Promise<LifeReport> {
    this.onReceived = () => undefined;
    const startedAtMs = performance.now();
    let placed = 0;
    const timer = setInterval(() => {
      const due = ((performance.now() - startedAtMs) / 1_000) * perSecond;
      for (; placed < due; placed++) this.place();
    }, 2);
    return this.measure(warmupMs, durationMs, () => clearInterval(timer));
  }

  /** Milliseconds until the webhook of the last of `count` orders that are placed at once. */
  async runBurst(count: number): Promise<number> {
    this.onReceived = () => undefined;
    const startedAtMs = performance.now();
    for (let i = 0; i < count; i++) this.place();
    await this.drain();
    return performance.now() - startedAtMs;
  }

  stop(): Promise<void> {
    this.receiver.close();
    this.receiver.closeAllConnections();
    return Promise.resolve();
  }

  private async measure(warmupMs: number, durationMs: number, end: () => void): Promise<LifeReport> {
    this.received.length = 0;
    const fromMs = performance.now() + warmupMs;
    await sleep(warmupMs + durationMs / 2);
    const openAtHalf = this.sentAtMs.size;
    await sleep(durationMs / 2);
    const openAtEnd = this.sentAtMs.size;
    const toMs = performance.now();
    const measured = this.received.filter(({ atMs }) => atMs >= fromMs && atMs < toMs);
    end();
    await this.drain();
    return {
      perSecond: measured.length / ((toMs - fromMs) / 1_000),
      latencies: measured.map(({ latencyMs }) => latencyMs).sort((a, b) => a - b),
      openAtHalf,
      openAtEnd,
      inAll: this.received.length,
    };
  }

  /** @throws Error when webhooks stay out */
  private async drain(): Promise<void> {
    const giveUpAtMs = performance.now() + DRAIN_LIMIT_MS;
    while (this.sentAtMs.size > 0) {
      if (performance.now() > giveUpAtMs) throw new Error(`${this.sentAtMs.size} orders without a webhook`);
      await sleep(1);
    }
  }

  private place(): void {
    const reference = randomUUID();
    // The wait for a free connection counts: a caller has it, too.
    this.sentAtMs.set(reference, performance.now());
    this.unsent.push(reference);
    this.sendNext();
  }

  private sendNext(): void {
    while (this.unsent.length > 0 && this.idle.length > 0) {
      const reference = this.unsent.shift()!;
      const body = `{"package_id":"pkg_fr_1gb_7d","reference":"${reference}"}`;
      const head = `${this.requestHead}Idempotency-Key: ${reference}\r\nContent-Length: ${body.length}\r\n\r\n`;
      // The one that rests longest: one that rested for minutes would be closed by the service.
      this.idle.shift()!.send(head + body);
    }
  }

  private take(reference: string): void {
    const sentAtMs = this.sentAtMs.get(reference);
    // A webhook may come twice.
    if (sentAtMs === undefined) return;
    this.sentAtMs.delete(reference);
    const atMs = performance.now();
    this.received.push({ atMs, latencyMs: atMs - sentAtMs });
    this.onReceived();
  }
}
