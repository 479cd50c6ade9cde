import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Cleanups } from './shared/child.js';
import { ORDERS_PATH, PACKAGE, startReceiver } from './shared/http.js';
import { KeepAliveConnection, openLoop, type Times } from './shared/load.js';
import { ascending } from './shared/report.js';

/** Each connection carries one call at a time. */
const CONNECTIONS = 64;
const DRAIN_LIMIT_MS = 60_000;
/** Orders between POST and webhook in the closed loop: enough to keep every process busy, too few to queue. */
export const OPEN_ORDERS = 128;
/** Orders that `runBurst` places at once. */
export const BURST = 100;

export interface LifeReport {
  /** Webhooks received per second, excluding the warm-up. */
  readonly perSecond: number;
  /** Milliseconds from each POST until its `order.issued` arrives, ascending. */
  readonly latencies: readonly number[];
  /** Orders without a webhook, halfway and at the end. If the number grows, the rate is not sustainable. */
  readonly openAtHalf: number;
  readonly openAtEnd: number;
  /** Orders including the warm-up, because the measured CPU time includes it too. */
  readonly inAll: number;
}

/** Follows one partner's orders from POST to webhook. This process is both caller and receiver. */
export class OrderLife {
  receiverUrl = '';
  private readonly connections: KeepAliveConnection[] = [];
  private readonly idle: KeepAliveConnection[] = [];
  private readonly unsent: string[] = [];
  private readonly sentAtMs = new Map<string, number>();
  private readonly received: { readonly atMs: number; readonly latencyMs: number }[] = [];
  private requestHead = '';
  private failure: Error | null = null;
  private onReceived: () => void = () => undefined;

  static async start(cleanups: Cleanups): Promise<OrderLife> {
    const life = new OrderLife();
    life.receiverUrl = await startReceiver(cleanups, (body) => {
      const { type, data } = JSON.parse(body) as { type: string; data: { reference: string } };
      if (type === 'order.issued') life.take(data.reference);
    });
    return life;
  }

  /**
   * Opens `CONNECTIONS` connections, spread evenly over the APIs. Call it right before a load, because an API closes
   * idle connections.
   */
  async connect(apiUrls: readonly string[], key: string): Promise<void> {
    this.requestHead =
      `POST ${ORDERS_PATH} HTTP/1.1\r\nHost: api\r\nAuthorization: Bearer ${key}\r\n` +
      'Content-Type: application/json\r\n';
    for (let nth = 0; nth < CONNECTIONS; nth++)
      this.connections.push(await KeepAliveConnection.open(apiUrls[nth % apiUrls.length]!));
    this.idle.push(...this.connections);
  }

  /** Call it after a load, once all webhooks have arrived. */
  disconnect(): void {
    this.idle.length = 0;
    for (const connection of this.connections.splice(0)) connection.close();
  }

  /** Keeps `OPEN_ORDERS` orders between POST and webhook. Each webhook received places the next order. */
  async runClosed(times: Times): Promise<LifeReport> {
    let isOver = false;
    this.onReceived = () => {
      if (!isOver) this.place();
    };
    for (let nth = 0; nth < OPEN_ORDERS; nth++) this.place();
    return this.measure(times, () => (isOver = true));
  }

  /** Places orders at a fixed rate, however late the webhooks are. */
  async runOpen(perSecond: number, times: Times): Promise<LifeReport> {
    let isOver = false;
    this.onReceived = () => undefined;
    const placing = openLoop(
      perSecond,
      () => isOver,
      () => Promise.resolve(this.place()),
    );
    const report = await this.measure(times, () => (isOver = true));
    await placing;
    return report;
  }

  /** @returns milliseconds until the last webhook of `BURST` orders placed at once */
  async runBurst(): Promise<number> {
    this.onReceived = () => undefined;
    const startedAtMs = performance.now();
    for (let nth = 0; nth < BURST; nth++) this.place();
    await this.drain();
    return performance.now() - startedAtMs;
  }

  private async measure({ warmupMs, durationMs }: Times, end: () => void): Promise<LifeReport> {
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
      latencies: ascending(measured.map(({ latencyMs }) => latencyMs)),
      openAtHalf,
      openAtEnd,
      inAll: this.received.length,
    };
  }

  /** @throws Error when webhooks do not arrive or a POST failed */
  private async drain(): Promise<void> {
    const giveUpAtMs = performance.now() + DRAIN_LIMIT_MS;
    while (this.sentAtMs.size > 0) {
      if (this.failure) throw this.failure;
      if (performance.now() > giveUpAtMs) throw new Error(`${this.sentAtMs.size} orders without a webhook`);
      await sleep(1);
    }
  }

  private place(): void {
    const reference = randomUUID();
    // The latency includes the wait for a free connection.
    this.sentAtMs.set(reference, performance.now());
    this.unsent.push(reference);
    this.sendNext();
  }

  private sendNext(): void {
    while (this.unsent.length > 0 && this.idle.length > 0) {
      const reference = this.unsent.shift()!;
      const body = `{"package_id":"${PACKAGE}","reference":"${reference}"}`;
      const head = `${this.requestHead}Idempotency-Key: ${reference}\r\nContent-Length: ${body.length}\r\n\r\n`;
      // The service closes connections that stay idle for minutes, so use the one that has been idle longest.
      const connection = this.idle.shift()!;
      connection.call(head + body).then(
        (status) => {
          if (status !== 202) this.failure = new Error(`POST ${ORDERS_PATH}: ${status}`);
          this.idle.push(connection);
          this.sendNext();
        },
        (error: Error) => (this.failure = error),
      );
    }
  }

  private take(reference: string): void {
    const sentAtMs = this.sentAtMs.get(reference);
    // Webhooks are delivered at least once.
    if (sentAtMs === undefined) return;
    this.sentAtMs.delete(reference);
    const atMs = performance.now();
    this.received.push({ atMs, latencyMs: atMs - sentAtMs });
    this.onReceived();
  }
}
