import os from 'node:os';
import { setTimeout as sleep } from 'node:timers/promises';
import type { ChaosBed } from './bed.js';
import type { Disturber } from './faults.js';
import type { Load } from './load.js';
import type { Check } from './verdict.js';

/** Between two rounds nothing restarts for as long as a round took: calls beside restarts are compared with these. */
const FIRST_CALM_MS = 15_000;
/** Before it the processes are cold: their latency is compared with nothing. */
const WARM_UP_MS = 20_000;
const BETWEEN_ROLES_MS = 500;
const MAX_P99_RATIO = 2;

interface Stretch {
  /** Of the process that was replaced, and of its successor. */
  readonly name: string;
  readonly fromMs: number;
  readonly toMs: number;
}

/**
 * Replaces every process of every role in turn, as a rolling release does: its successor is ready, it leaves the rotation,
 * gets SIGTERM and exits. Of each role that partners need, two are always there.
 */
export class RollingRestarts implements Disturber {
  total = 0;
  rounds = 0;
  /** Processes that did not exit by themselves, or not with 0. */
  readonly faults: string[] = [];
  /** Milliseconds from SIGTERM to the exit, by the name of the process. */
  readonly stopsMs = new Map<string, number[]>();
  private readonly stretches: Stretch[] = [];
  private warmAtMs = Infinity;
  /** Milliseconds of all cores while nothing restarted: how much of the machine the load takes. */
  private readonly calm = { busyMs: 0, allMs: 0 };

  constructor(private readonly bed: ChaosBed) {}

  async run(signal: AbortSignal): Promise<void> {
    await sleep(WARM_UP_MS, undefined, { signal }).catch(() => undefined);
    this.warmAtMs = performance.now();
    await this.rest(FIRST_CALM_MS, signal);
    while (!signal.aborted) {
      const roundAtMs = performance.now();
      for (const role of this.bed.processes) {
        // The first round is always whole: until its end the processes of an older version are there (`--from`).
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
    const busy = `${Math.round((100 * this.calm.busyMs) / this.calm.allMs)} % of the machine was busy between them`;
    return `${this.total} restarts in ${this.rounds} rounds, ${busy}; longest from SIGTERM to the exit: ${longest.join(', ')}`;
  }

  /** Whether the first processes had served calls for a while at that moment of `performance.now()`. */
  wasWarm(atMs: number): boolean {
    return atMs >= this.warmAtMs;
  }

  /** The process that was being replaced at that moment of `performance.now()`, or null. */
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

/** No partner may notice a release. @param missedPolls polls of a feed without a page */
export function judgeRestarts(
  { endpoints }: ChaosBed,
  load: Load,
  restarts: RollingRestarts,
  missedPolls: number,
): readonly Check[] {
  const failed = [...load.failures].map(([what, times]) => `${times} x ${what}`);
  if (missedPolls > 0) failed.push(`${missedPolls} polls of a feed failed`);
  // A stop waits for the attempts under way: a good receiver gets everything once.
  const webhooks = endpoints.flatMap(({ receiver }) => [...receiver.events]);
  const repeated = webhooks
    .filter(([, times]) => times > 1)
    .map(([id, times]) => `${id} came ${times} times`);
  const ended = restarts.faults;
  return [
    { promise: 'no call failed, none was asked to come again', breaches: failed, count: load.answers.length },
    { promise: 'every process ended by itself, with exit code 0', breaches: ended, count: restarts.total },
    { promise: 'every webhook came once', breaches: repeated, count: webhooks.length },
    judgeLatency(load, restarts),
  ];
}

function judgeLatency({ answers }: Load, restarts: RollingRestarts): Check {
  const byProcess = Map.groupBy(answers, ({ atMs }) => restarts.underWayAt(atMs));
  const otherwise = (byProcess.get(null) ?? []).filter(({ atMs }) => restarts.wasWarm(atMs));
  byProcess.delete(null);
  const during = [...byProcess.values()].flat();
  const [beside, alone] = [p99(during), p99(otherwise)];
  const figures = `p99 of POST /v1/orders ${beside.toFixed(0)} ms beside restarts, ${alone.toFixed(0)} ms otherwise`;
  console.log(figures);
  for (const [name, those] of byProcess) console.log(`  beside that of ${name}: ${p99(those).toFixed(0)} ms`);
  const breaches = beside > MAX_P99_RATIO * alone ? [figures] : [];
  return { promise: 'p99 within twice of what it is without restarts', breaches, count: during.length };
}

function p99(answers: Load['answers']): number {
  const sorted = answers.map(({ ms }) => ms).sort((a, b) => a - b);
  return sorted[Math.floor(sorted.length * 0.99)] ?? 0;
}
