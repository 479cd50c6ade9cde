import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { createHistogram } from 'node:perf_hooks';
import { setTimeout as sleep } from 'node:timers/promises';

const HEAD_END = '\r\n\r\n';
const TICK_MS = 2;

export interface Times {
  /** Time under the same load before the measurement starts. */
  readonly warmupMs: number;
  readonly durationMs: number;
}

export interface LoadReport {
  readonly perSecond: number;
  readonly p50Ms: number;
  readonly p95Ms: number;
  readonly p99Ms: number;
  /** Calls including the warm-up, because the measured CPU time includes it too. */
  readonly answeredInAll: number;
  /** CPU cores used by the callers' process. */
  readonly generatorCpu: number;
}

/**
 * Closed loop: each caller starts its next call when the previous one has finished.
 * @throws Error when a call fails
 */
export async function closedLoop(
  callers: readonly (() => Promise<void>)[],
  { warmupMs, durationMs }: Times,
): Promise<LoadReport> {
  const latencies = createHistogram();
  const cpuBefore = process.cpuUsage();
  const startedAtMs = performance.now();
  const measureFromMs = startedAtMs + warmupMs;
  const endAtMs = measureFromMs + durationMs;
  let answeredInAll = 0;
  let lastAtMs = 0;
  const drive = async (call: () => Promise<void>): Promise<void> => {
    for (let nowMs = performance.now(); nowMs < endAtMs;) {
      const sentAtMs = nowMs;
      await call();
      nowMs = performance.now();
      answeredInAll++;
      if (nowMs < measureFromMs) continue;
      lastAtMs = nowMs;
      latencies.record(nanoseconds(nowMs - sentAtMs));
    }
  };
  await Promise.all(callers.map(drive));
  const { user, system } = process.cpuUsage(cpuBefore);
  return {
    perSecond: latencies.count / ((lastAtMs - measureFromMs) / 1_000),
    p50Ms: latencies.percentile(50) / 1e6,
    p95Ms: latencies.percentile(95) / 1e6,
    p99Ms: latencies.percentile(99) / 1e6,
    answeredInAll,
    generatorCpu: (user + system) / 1_000 / (performance.now() - startedAtMs),
  };
}

/**
 * Open loop: starts calls at a fixed rate, even if earlier ones are still running, and finally waits for all of them.
 */
export async function openLoop(
  perSecond: number,
  isOver: (begun: number) => boolean,
  call: (nth: number) => Promise<unknown>,
): Promise<void> {
  const underWay = new Set<Promise<unknown>>();
  const startedAtMs = performance.now();
  for (let begun = 0; !isOver(begun);) {
    for (; startedAtMs + (begun * 1_000) / perSecond <= performance.now() && !isOver(begun); begun++) {
      const one = call(begun);
      underWay.add(one);
      void one.finally(() => underWay.delete(one));
    }
    await sleep(TICK_MS);
  }
  await Promise.all(underWay);
}

/** Converts a latency to the unit that the histogram records. */
export function nanoseconds(ms: number): number {
  return Math.max(1, Math.round(ms * 1e6));
}

/**
 * One HTTP/1.1 connection with one call at a time. It avoids an HTTP client because the caller shares its cores with
 * the service, and this costs a third of undici's CPU time.
 */
export class KeepAliveConnection {
  private head: Buffer | null = null;
  private bodyLeft = 0;
  private status = 0;
  private answered: (status: number) => void = () => undefined;
  private failed: (error: Error) => void = () => undefined;

  private constructor(private readonly socket: Socket) {
    socket.setNoDelay(true);
    socket.on('data', (chunk: Buffer) => this.take(chunk));
    socket.on('error', (error) => this.failed(error));
    socket.on('close', () => this.failed(new Error('the server closed a connection under load')));
  }

  static async open(baseUrl: string): Promise<KeepAliveConnection> {
    const { hostname, port } = new URL(baseUrl);
    const socket = connect(Number(port), hostname);
    await once(socket, 'connect');
    return new KeepAliveConnection(socket);
  }

  /**
   * @returns the status
   * @throws Error when the connection closes without a response
   */
  call(request: string | Buffer): Promise<number> {
    return new Promise((resolve, reject) => {
      this.answered = resolve;
      this.failed = reject;
      this.socket.write(request);
    });
  }

  close(): void {
    this.failed = () => undefined;
    this.socket.destroy();
  }

  private take(chunk: Buffer): void {
    const body = this.bodyLeft > 0 ? chunk : this.readHead(chunk);
    if (body === null) return;
    this.bodyLeft -= body.length;
    if (this.bodyLeft === 0) this.answered(this.status);
  }

  /** @returns the part of `chunk` that belongs to the body, or null while the head is incomplete */
  private readHead(chunk: Buffer): Buffer | null {
    const bytes = this.head ? Buffer.concat([this.head, chunk]) : chunk;
    const end = bytes.indexOf(HEAD_END);
    this.head = end < 0 ? bytes : null;
    if (end < 0) return null;
    const head = bytes.toString('latin1', 0, end);
    const length = /\r\ncontent-length: (\d+)/i.exec(head)?.[1];
    if (length === undefined) throw new Error(`a response without Content-Length:\n${head}`);
    this.status = Number(head.slice(9, 12));
    this.bodyLeft = Number(length);
    return bytes.subarray(end + HEAD_END.length);
  }
}
