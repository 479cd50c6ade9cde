import { setTimeout as sleep } from 'node:timers/promises';
import type { ChaosBed } from './bed.js';
import { PROVIDER_FAULTS, PROVIDERS_CALM } from './faults.js';
import type { Random } from './random.js';

const PAUSE_MS = { min: 1_000, max: 4_000 };
/** Beyond the lease, so that another worker has taken the work over, and below it. */
const FREEZE_MS = { min: 500, max: 9_000 };
const DOWN_MS = { min: 100, max: 2_500 };
const FULL_MS = { min: 500, max: 8_000 };

interface Disturbance {
  readonly name: string;
  readonly weight: number;
  /** Draws what it needs before it begins, so that a seed repeats the same storm. */
  readonly prepare: (random: Random) => () => Promise<void>;
}

/** What happens to the service, one after the other, drawn from a seed: the same seed gives the same storm. */
export class Storm {
  readonly counts = new Map<string, number>();
  private readonly disturbances: readonly Disturbance[];
  private readonly underWay = new Set<Promise<void>>();
  private failure: unknown = null;

  constructor(
    private readonly bed: ChaosBed,
    private readonly random: Random,
  ) {
    this.disturbances = [...ofProcesses(bed), ...ofStores(bed), ...ofProviders(bed)];
  }

  /** @throws what a process said that does not come back */
  async run(signal: AbortSignal): Promise<void> {
    while (!signal.aborted && this.failure === null) {
      const pauseMs = this.random.between(PAUSE_MS.min, PAUSE_MS.max);
      const { name, prepare } = this.draw();
      const begin = prepare(this.random);
      await sleep(pauseMs, undefined, { signal }).catch(() => undefined);
      if (signal.aborted) break;
      this.counts.set(name, (this.counts.get(name) ?? 0) + 1);
      this.follow(begin());
      // Two at once now and then, all at once never: a start needs the database some time.
      if (this.underWay.size > 1) await Promise.race(this.underWay);
    }
    await Promise.all(this.underWay);
    if (this.failure !== null) throw this.failure as Error;
  }

  get total(): number {
    return [...this.counts.values()].reduce((sum, count) => sum + count, 0);
  }

  describe(): string {
    const counts = [...this.counts].sort().map(([name, count]) => `${name} ${count}`);
    return `${this.total} disturbances: ${counts.join(', ')}`;
  }

  private follow(work: Promise<void>): void {
    const task = work.catch((error: unknown) => void (this.failure ??= error));
    this.underWay.add(task);
    void task.finally(() => this.underWay.delete(task));
  }

  private draw(): Disturbance {
    const all = this.disturbances.reduce((sum, { weight }) => sum + weight, 0);
    let at = this.random.next() * all;
    return this.disturbances.find(({ weight }) => (at -= weight) < 0) ?? this.disturbances[0]!;
  }
}

/** One at a time of each: what is down already is not killed again. */
function exclusively(): (work: () => Promise<void>) => Promise<void> {
  let turn = Promise.resolve();
  return (work) => {
    const next = turn.then(work);
    turn = next.catch(() => undefined);
    return next;
  };
}

function ofProcesses({ apis, workers }: ChaosBed): Disturbance[] {
  const turns = new Map([...apis, ...workers].map((role) => [role, exclusively()]));
  const one = (name: string, roles: typeof apis, weight: number): Disturbance[] => [
    {
      name: `SIGKILL ${name}`,
      weight,
      prepare: (random) => {
        const role = random.pick(roles);
        return () => turns.get(role)!(() => role.killAndRestart());
      },
    },
    {
      name: `SIGSTOP ${name}`,
      weight,
      prepare: (random) => {
        const [role, ms] = [random.pick(roles), random.between(FREEZE_MS.min, FREEZE_MS.max)];
        return () => turns.get(role)!(() => role.freeze(ms));
      },
    },
  ];
  return [...one('worker', workers, 5), ...one('api', apis, 3)];
}

function ofStores({ postgres, redis }: ChaosBed): Disturbance[] {
  const inTurn = exclusively();
  const down = (random: Random): number => random.between(DOWN_MS.min, DOWN_MS.max);
  const list: Disturbance[] = [
    {
      name: 'PostgreSQL restarted',
      weight: 2,
      prepare: (random) => {
        const ms = down(random);
        return () => inTurn(() => postgres.restart(ms));
      },
    },
    {
      name: 'PostgreSQL crashed',
      weight: 2,
      prepare: (random) => {
        const ms = down(random);
        return () => inTurn(() => postgres.crash(ms));
      },
    },
    {
      // Drawn where nobody may mount a disk, too: a seed is the same storm for everybody.
      name: postgres.canFillDisk ? 'disk full' : 'disk full (left out)',
      weight: 2,
      prepare: (random) => {
        const ms = random.between(FULL_MS.min, FULL_MS.max);
        return () => inTurn(() => postgres.fillDisk(ms));
      },
    },
  ];
  if (!redis) {
    const lose = async (): Promise<void> =>
      void (await postgres.rows('TRUNCATE bullmq.job CASCADE').catch(() => undefined));
    return [...list, { name: 'queue emptied', weight: 1, prepare: () => () => inTurn(lose) }];
  }
  return [
    ...list,
    {
      name: 'Redis killed',
      weight: 3,
      prepare: (random) => {
        const ms = down(random);
        return () => inTurn(() => redis.killFor(ms));
      },
    },
    { name: 'Redis FLUSHALL', weight: 3, prepare: () => () => inTurn(() => redis.flush()) },
  ];
}

function ofProviders({ simulators }: ChaosBed): Disturbance[] {
  return [
    {
      name: 'wholesaler fails',
      weight: 7,
      prepare: (random) => {
        const { provider, control } = random.pick(PROVIDER_FAULTS);
        return () => simulators[provider].control(control);
      },
    },
    { name: 'wholesalers are well', weight: 3, prepare: () => () => calmProviders(simulators) },
  ];
}

/** Puts every switch of the simulators back. */
export async function calmProviders(simulators: ChaosBed['simulators']): Promise<void> {
  for (const { provider, control } of PROVIDERS_CALM) await simulators[provider].control(control);
}
