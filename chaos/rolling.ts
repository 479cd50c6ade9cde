import os from 'node:os';
import { setTimeout as sleep } from 'node:timers/promises';
import type { ChaosBed } from './bed.js';
import type { Disturber } from './faults.js';
import type { Load } from './load.js';
import type { Check } from './verdict.js';

/**
 * Calm period before the first round. After each round, nothing restarts for as long as the round took. Latency during
 * restarts is compared with these periods.
 */
const FIRST_CALM_MS = 15_000;
/** Until then the processes are cold, and their latency is not part of the comparison. */
const WARM_UP_MS = 20_000;
const BETWEEN_ROLES_MS = 500;
const MAX_P99_RATIO = 2;

interface Stretch {
  /** Name shared by the replaced process and its successor. */
  readonly name: string;
  readonly fromMs: number;
  readonly toMs: number;
}

/**
 * Replaces every process of every role in turn, like a rolling release: the successor becomes ready, then the old
 * process leaves the rotation, receives SIGTERM and exits. At least two processes of each role that partners need are
 * always running.
 */
export class RollingRestarts implements Disturber {
  total = 0;
  rounds = 0;
  /** Processes that exited with a signal or a code other than 0. */
  readonly faults: string[] = [];
  /** Milliseconds from SIGTERM to the exit, by process name. */
  readonly stopsMs = new Map<string, number[]>();
  private readonly stretches: Stretch[] = [];
  private warmAtMs = Infinity;
  /** CPU milliseconds of all cores between restarts, which show how much of the machine the load uses. */
  private readonly calm = { busyMs: 0, allMs: 0 };

  constructor(private readonly bed: ChaosBed) {}

  async run(signal: AbortSignal): Promise<void> {
    await sleep(WARM_UP_MS, undefined, { signal }).catch(() => undefined);
    this.warmAtMs = performance.now();
    await this.rest(FIRST_CALM_MS, signal);
    while (!signal.aborted) {
      const roundAtMs = performance.now();
      for (const role of this.bed.processes) {
        // Always finish the first round, because it replaces the processes of the older version (`--from`).
        if (signal.aborted && this.rounds > 0) return;
        const fromMs = performance.now();
        const { stopMs, fault } = await this.bed.replace(role);
        this.stopsMs.set(role.name, [...(this.stopsMs.get(role.name) ?? []), stopMs]);
        if (fault !== null) this.faults.push(fault);
        this.total++;
        await sleep(BETWEEN_ROLES_MS);
        this.stretches.push({ name: role.name, fromMs, toMs: performance.now() });
      }
      this.rounds++;
      await this.rest(performance.now() - roundAtMs, signal);
    }
  }

  describe(): string {
    const longest = [...this.stopsMs].map(([name, times]) => `${name} ${Math.round(Math.max(...times))} ms`);
    const busy = `${Math.round((100 * this.calm.busyMs) / this.calm.allMs)} % CPU in use between rounds`;
    return `${this.total} restarts in ${this.rounds} rounds, ${busy}; longest time from SIGTERM to exit: ${longest.join(', ')}`;
  }

  /**
   * @param atMs a time of `performance.now()`
   * @returns whether the warm-up was over then
   */
  wasWarm(atMs: number): boolean {
    return atMs >= this.warmAtMs;
  }

  /**
   * @param atMs a time of `performance.now()`
   * @returns the process that was being replaced then, or null
   */
  underWayAt(atMs: number): string | null {
    return this.stretches.find(({ fromMs, toMs }) => atMs >= fromMs && atMs < toMs)?.name ?? null;
  }

  private async rest(ms: number, signal: AbortSignal): Promise<void> {
    const before = coreTimes();
    await sleep(ms, undefined, { signal }).catch(() => undefined);
    const after = coreTimes();
    this.calm.busyMs += after.busyMs - before.busyMs;
    this.calm.allMs += after.allMs - before.allMs;
  }
}

function coreTimes(): { busyMs: number; allMs: number } {
  const cores = os.cpus().map(({ times }) => times);
  const allMs = cores.flatMap((times) => Object.values(times)).reduce((sum, ms) => sum + ms, 0);
  return { allMs, busyMs: allMs - cores.reduce((sum, { idle }) => sum + idle, 0) };
}

/**
 * Partners must not notice a release.
 * @param missedPolls feed polls that returned no page
 */
export function judgeRestarts(
  { endpoints }: ChaosBed,
  load: Load,
  restarts: RollingRestarts,
  missedPolls: number,
): readonly Check[] {
  const failed = [...load.failures].map(([what, times]) => `${times} x ${what}`);
  if (missedPolls > 0) failed.push(`${missedPolls} feed polls failed`);
  // A stopping process finishes its attempts, so a good receiver gets everything exactly once.
  const webhooks = endpoints.flatMap(({ receiver }) => [...receiver.events]);
  const repeated = webhooks
    .filter(([, times]) => times > 1)
    .map(([id, times]) => `${id} arrived ${times} times`);
  const ended = restarts.faults;
  return [
    { promise: 'no call failed, and none had to be repeated', breaches: failed, count: load.answers.length },
    { promise: 'every process exited with code 0', breaches: ended, count: restarts.total },
    { promise: 'every webhook arrived once', breaches: repeated, count: webhooks.length },
    judgeLatency(load, restarts),
  ];
}

function judgeLatency({ answers }: Load, restarts: RollingRestarts): Check {
  const byProcess = Map.groupBy(answers, ({ atMs }) => restarts.underWayAt(atMs));
  const otherwise = (byProcess.get(null) ?? []).filter(({ atMs }) => restarts.wasWarm(atMs));
  byProcess.delete(null);
  const during = [...byProcess.values()].flat();
  const [beside, alone] = [p99(during), p99(otherwise)];
  const figures = `p99 of POST /v1/orders ${beside.toFixed(0)} ms during restarts, ${alone.toFixed(0)} ms otherwise`;
  console.log(figures);
  for (const [name, those] of byProcess)
    console.log(`  during the restart of ${name}: ${p99(those).toFixed(0)} ms`);
  const breaches = beside > MAX_P99_RATIO * alone ? [figures] : [];
  return { promise: 'p99 is at most twice the p99 without restarts', breaches, count: during.length };
}

function p99(answers: Load['answers']): number {
  const sorted = answers.map(({ ms }) => ms).sort((a, b) => a - b);
  return sorted[Math.floor(sorted.length * 0.99)] ?? 0;
}
