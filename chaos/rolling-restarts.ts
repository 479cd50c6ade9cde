import os from 'node:os';
import { setTimeout as sleep } from 'node:timers/promises';
import type { ChaosBed } from './bed.js';

/** Between two rounds nothing is restarted for as long as a round took: what calls beside restarts are compared with. */
const FIRST_CALM_MS = 15_000;
/** Before it the processes are cold: what they take then is compared with nothing. */
const WARM_UP_MS = 20_000;
const BETWEEN_ROLES_MS = 500;

interface Stretch {
  /** Of the process that was replaced, and of what came up in its place. */
  readonly name: string;
  readonly fromMs: number;
  readonly toMs: number;
}

interface CoreTimes {
  busyMs: number;
  allMs: number;
}

/**
 * Every process of every role in turn, as a rolling release does it: the next one ready, out of rotation with the one
 * before, SIGTERM, its own end, and then the next process. Of each role that partners need, two are always there.
 */
export class RollingRestarts {
  /** Restarts so far. */
  total = 0;
  rounds = 0;
  /** Processes that did not end by themselves, or not with 0. */
  readonly faults: string[] = [];
  /** How long each took from SIGTERM to its end, milliseconds, by the name of the process. */
  readonly stopsMs = new Map<string, number[]>();
  private readonly stretches: Stretch[] = [];
  private warmAtMs = Infinity;
  /** Of the whole machine while nothing was restarted, milliseconds of all its cores: how much of it the load takes. */
  private readonly calm: CoreTimes = { busyMs: 0, allMs: 0 };

  constructor(private readonly bed: ChaosBed) {}

  /** Round after round, until `signal` aborts. @throws Error when a process does not start again */
  async run(signal: AbortSignal): Promise<void> {
    await sleep(WARM_UP_MS, undefined, { signal }).catch(() => undefined);
    this.warmAtMs = performance.now();
    await this.rest(FIRST_CALM_MS, signal);
    while (!signal.aborted) {
      const roundMs = performance.now();
      for (const role of this.bed.processes) {
        // The first round is whole all the same: until its end the processes of an older version are there (`--from`).
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
      await this.rest(performance.now() - roundMs, signal);
    }
  }

  /** Whether the first processes had taken calls for a while at that moment of `performance.now()`. */
  wasWarm(atMs: number): boolean {
    return atMs >= this.warmAtMs;
  }

  /** Whose replacement was under way at that moment of `performance.now()`; null when nobody's was. */
  underWayAt(atMs: number): string | null {
    return this.stretches.find(({ fromMs, toMs }) => atMs >= fromMs && atMs < toMs)?.name ?? null;
  }

  describe(): string {
    const longest = [...this.stopsMs].map(([name, times]) => `${name} ${Math.round(Math.max(...times))} ms`);
    const busy = `${Math.round((100 * this.calm.busyMs) / this.calm.allMs)} % of the machine was busy between them`;
    return `${this.total} restarts in ${this.rounds} rounds, ${busy}; longest from SIGTERM to its end: ${longest.join(', ')}`;
  }

  private async rest(ms: number, signal: AbortSignal): Promise<void> {
    const before = coreTimes();
    await sleep(ms, undefined, { signal }).catch(() => undefined);
    const after = coreTimes();
    this.calm.busyMs += after.busyMs - before.busyMs;
    this.calm.allMs += after.allMs - before.allMs;
  }
}

function coreTimes(): CoreTimes {
  const cores = os.cpus().map(({ times }) => times);
  const allMs = cores.flatMap((times) => Object.values(times)).reduce((sum, ms) => sum + ms, 0);
  return { allMs, busyMs: allMs - cores.reduce((sum, { idle }) => sum + idle, 0) };
}
