import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { createHistogram } from 'node:perf_hooks';
import { KeepAliveConnection } from './keep-alive-connection.js';
import type { LoadPlan, LoadReport } from './plan.js';

/** Closed loop: every connection sends its next call when the last one is answered. */
export async function runLoad(plan: LoadPlan): Promise<LoadReport> {
  const sockets = await Promise.all(Array.from({ length: plan.connections }, () => open(plan)));
  try {
    return await new LoadRun(plan).over(sockets);
  } finally {
    for (const socket of sockets) socket.destroy();
  }
}

class LoadRun {
  private readonly latencies = createHistogram();
  private readonly statuses: Record<string, number> = {};
  private readonly nextRequest: () => string | Buffer;
  private answeredInAll = 0;
  private answered = 0;
  private lastAnswerAtMs = 0;
  private readonly measureFromMs: number;
  private readonly endAtMs: number;

  constructor(plan: LoadPlan) {
    this.nextRequest = requestsOf(plan);
    this.measureFromMs = performance.now() + plan.warmupMs;
    this.endAtMs = this.measureFromMs + plan.durationMs;
  }

  async over(sockets: readonly Socket[]): Promise<LoadReport> {
    const cpuBefore = process.cpuUsage();
    const startedAtMs = performance.now();
    await Promise.all(sockets.map((socket) => this.drive(socket)));
    const cpu = process.cpuUsage(cpuBefore);
    const seconds = (this.lastAnswerAtMs - this.measureFromMs) / 1_000;
    return {
      perSecond: this.answered / seconds,
      p50Ms: this.latencies.percentile(50) / 1e6,
      p95Ms: this.latencies.percentile(95) / 1e6,
      p99Ms: this.latencies.percentile(99) / 1e6,
      statuses: this.statuses,
      answeredInAll: this.answeredInAll,
      generatorCpu: (cpu.user + cpu.system) / 1_000 / (performance.now() - startedAtMs),
    };
  }

  private drive(socket: Socket): Promise<void> {
    return new Promise((resolve, reject) => {
      let sentAtMs = 0;
      const connection = new KeepAliveConnection(socket, (status) => {
        const nowMs = performance.now();
        this.count(status, sentAtMs, nowMs);
        if (nowMs >= this.endAtMs) return resolve();
        sentAtMs = nowMs;
        connection.send(this.nextRequest());
      });
      socket.on('error', reject);
      socket.on('close', () => reject(new Error('the server closed a connection under load')));
      sentAtMs = performance.now();
      connection.send(this.nextRequest());
    });
  }

  private count(status: number, sentAtMs: number, nowMs: number): void {
    this.answeredInAll++;
    if (nowMs < this.measureFromMs) return;
    this.answered++;
    this.lastAnswerAtMs = nowMs;
    this.statuses[status] = (this.statuses[status] ?? 0) + 1;
    this.latencies.record(Math.max(1, Math.round((nowMs - sentAtMs) * 1e6)));
  }
}

async function open({ baseUrl }: LoadPlan): Promise<Socket> {
  const { hostname, port } = new URL(baseUrl);
  const socket = connect(Number(port), hostname);
  await once(socket, 'connect');
  return socket;
}

/** GETs are bytes made once per key; a POST is made anew for its key of idempotency. */
function requestsOf(plan: LoadPlan): () => string | Buffer {
  const { host } = new URL(plan.baseUrl);
  const { body, path, keys } = plan;
  const common = `host: ${host}\r\naccept: application/json\r\nuser-agent: bench\r\n`;
  let turn = 0;
  const nextIndex = (): number => (turn = (turn + 1) % keys.length);
  const heads = keys.map(
    (key) => `${body ? 'POST' : 'GET'} ${path} HTTP/1.1\r\n${common}authorization: Bearer ${key}\r\n`,
  );
  if (body === undefined) {
    const requests = heads.map((head) => Buffer.from(`${head}\r\n`));
    return () => requests[nextIndex()]!;
  }
  const typed = `content-type: application/json\r\ncontent-length: ${Buffer.byteLength(body)}\r\n`;
  return () => `${heads[nextIndex()]!}${typed}idempotency-key: ${randomUUID()}\r\n\r\n${body}`;
}
