import { setTimeout as sleep } from 'node:timers/promises';
import type { ChaosBed } from './bed.js';
import { exclusively, type InTurn, type RoleProcess } from './processes.js';
import type { Random } from './random.js';
import { inFlight, unbalancedEndpoints } from './verdict.js';

/**
 * Groups of faults. `deaths` kills and freezes processes, restarts PostgreSQL and empties the queue, but loses no
 * commit. `crashes` kills PostgreSQL and fills its disk. `silence` drops packets on open connections to PostgreSQL.
 * `wholesalers` makes the wholesalers' simulators fail.
 */
export const FAULT_GROUPS = ['deaths', 'crashes', 'silence', 'wholesalers'] as const;
export type FaultGroup = (typeof FAULT_GROUPS)[number];

/** A storm continues until it has drawn this many faults, which may take longer than planned on a busy machine. */
const MIN_FAULTS = 6;
const PAUSE_MS = { min: 1_000, max: 4_000 };
/** Ranges from below to above the lease duration, so that another worker sometimes takes over. */
const FREEZE_MS = { min: 500, max: 9_000 };
const DOWN_MS = { min: 100, max: 2_500 };
const FULL_MS = { min: 500, max: 8_000 };

interface Fault {
  readonly name: string;
  readonly weight: number;
  /** Draws its parameters before the fault begins, so that a seed reproduces the same storm. */
  readonly prepare: (random: Random) => () => Promise<void>;
}

/** Disturbs the service while partners place orders. */
export interface Disturber {
  readonly total: number;
  /**
   * Runs until `signal` aborts and then completes what it must not leave half done.
   * @throws Error when a process does not restart
   */
  run(signal: AbortSignal): Promise<void>;
  describe(): string;
}

/** Draws faults one after the other from a seed. The same seed produces the same storm. */
export class RandomFaults implements Disturber {
  readonly counts = new Map<string, number>();
  /** Number of attempts in flight during a fault. Each may arrive twice. Only complete for `deaths`. */
  cut = 0;
  /** Endpoints whose delivery count differed from their event count at some point. */
  readonly unbalanced: string[] = [];
  /** Whether a fault may lose the outcome of an attempt, or the claim that started it. */
  readonly losesOutcomes: boolean;
  private readonly faults: readonly Fault[];
  private readonly underWay = new Set<Promise<void>>();
  private failure: unknown = null;

  constructor(
    private readonly bed: ChaosBed,
    private readonly random: Random,
    groups: readonly FaultGroup[],
  ) {
    this.losesOutcomes = groups.includes('crashes') || groups.includes('silence');
    const of: Readonly<Record<FaultGroup, () => Fault[]>> = {
      deaths: () => [...this.ofProcesses(), ...this.ofRestarts()],
      crashes: () => ofCrashes(bed),
      silence: () => [ofSilence(bed)],
      wholesalers: () => ofWholesalers(bed),
    };
    this.faults = groups.flatMap((group) => of[group]());
  }

  async run(signal: AbortSignal): Promise<void> {
    while ((!signal.aborted || this.total < MIN_FAULTS) && this.failure === null) {
      const pauseMs = this.random.between(PAUSE_MS.min, PAUSE_MS.max);
      const { name, prepare } = this.draw();
      const begin = prepare(this.random);
      await sleep(pauseMs);
      this.counts.set(name, (this.counts.get(name) ?? 0) + 1);
      this.follow(begin());
      // Allow at most two faults at once, because a start needs the database for a while.
      if (this.underWay.size > 1) await Promise.race(this.underWay);
      this.unbalanced.push(...(await unbalancedEndpoints(this.bed)));
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

  private draw(): Fault {
    const all = this.faults.reduce((sum, { weight }) => sum + weight, 0);
    let at = this.random.next() * all;
    return this.faults.find(({ weight }) => (at -= weight) < 0) ?? this.faults[0]!;
  }

  private ofProcesses(): Fault[] {
    const { apis, workers } = this.bed;
    const turns = new Map([...apis, ...workers].map((role) => [role, exclusively()]));
    const count = async (role: RoleProcess): Promise<void> =>
      void (this.cut += await inFlight(this.bed, role.pid));
    const of = (name: string, roles: readonly RoleProcess[], weight: number): Fault[] => [
      {
        name: `SIGKILL ${name}`,
        weight,
        prepare: (random) => {
          const role = random.pick(roles);
          return () => turns.get(role)!(() => role.killAndRestart(() => count(role)));
        },
      },
      {
        name: `SIGSTOP ${name}`,
        weight,
        prepare: (random) => {
          const [role, ms] = [random.pick(roles), random.between(FREEZE_MS.min, FREEZE_MS.max)];
          return () => turns.get(role)!(() => role.freeze(ms, () => count(role)));
        },
      },
    ];
    return [...of('worker', workers, 5), ...of('api', apis, 3)];
  }

  private ofRestarts(): Fault[] {
    const { postgres, redis } = this.bed;
    const restart = async (ms: number): Promise<void> => {
      const before = await inFlight(this.bed);
      await postgres.restart(ms);
      this.cut += Math.max(before, await inFlight(this.bed));
    };
    const restarted = forSome('PostgreSQL restarted', 2, DOWN_MS, postgres.inTurn, restart);
    if (!redis) {
      const lose = async (): Promise<void> =>
        void (await postgres.rows('TRUNCATE bullmq.job CASCADE').catch(() => undefined));
      return [restarted, { name: 'queue emptied', weight: 1, prepare: () => () => postgres.inTurn(lose) }];
    }
    return [
      restarted,
      forSome('Redis killed', 3, DOWN_MS, postgres.inTurn, (ms) => redis.killFor(ms)),
      { name: 'Redis FLUSHALL', weight: 3, prepare: () => () => postgres.inTurn(() => redis.flush()) },
    ];
  }
}

/** A fault that lasts for a random time. */
function forSome(
  name: string,
  weight: number,
  { min, max }: { readonly min: number; readonly max: number },
  inTurn: InTurn,
  work: (ms: number) => Promise<void>,
): Fault {
  return {
    name,
    weight,
    prepare: (random) => {
      const ms = random.between(min, max);
      return () => inTurn(() => work(ms));
    },
  };
}

function ofCrashes({ postgres }: ChaosBed): Fault[] {
  // Draw this fault even where the process may not mount a disk, so that a seed means the same storm everywhere.
  const full = postgres.canFillDisk ? 'disk full' : 'disk full (skipped)';
  return [
    forSome('PostgreSQL crashed', 2, DOWN_MS, postgres.inTurn, (ms) => postgres.crash(ms)),
    forSome(full, 2, FULL_MS, postgres.inTurn, (ms) => postgres.fillDisk(ms)),
  ];
}

/** Open connections lose all further packets without being closed. New connections work. */
function ofSilence({ proxy }: ChaosBed): Fault {
  return {
    name: 'connections silent',
    weight: 2,
    prepare: (random) => {
      const lost = random.pick(['both', 'answers', 'requests'] as const);
      return () => Promise.resolve(proxy!.swallow(lost));
    },
  };
}

function ofWholesalers({ simulators }: ChaosBed): Fault[] {
  return [
    {
      name: 'wholesaler fails',
      weight: 7,
      prepare: (random) => {
        const { provider, control } = random.pick(PROVIDER_FAULTS);
        return () => simulators[provider].control(control);
      },
    },
    { name: 'wholesalers work again', weight: 3, prepare: () => () => calmProviders(simulators) },
  ];
}

/** Resets every switch of the simulators. */
export async function calmProviders(simulators: ChaosBed['simulators']): Promise<void> {
  for (const { provider, control } of PROVIDERS_CALM) await simulators[provider].control(control);
}

/** Body for the control endpoint of a wholesaler's simulator. Faults with a count apply to the next calls. */
interface ProviderFault {
  readonly name: string;
  readonly provider: 'esimAccess' | 'zendit';
  readonly control: object;
}

const ofEsimAccess = (name: string, faults: object): ProviderFault => ({
  name: `esim_access ${name}`,
  provider: 'esimAccess',
  control: { faults },
});
const ofZendit = (name: string, control: object): ProviderFault => ({
  name: `zendit ${name}`,
  provider: 'zendit',
  control,
});

/** Longer than the service's timeout, shorter than its read lag. */
const TOO_SLOW_MS = 2_500;
/** Shorter than the service's read lag. */
const LAG_MS = 700;

const PROVIDER_FAULTS: readonly ProviderFault[] = [
  ofEsimAccess('loses responses', { dropAfterCommit: 5 }),
  ofEsimAccess('loses orders', { dropBeforeCommit: 5 }),
  ofEsimAccess('is busy', { busy: 8 }),
  ofEsimAccess('returns HTML', { garbage: 4, garbageKind: 'html' }),
  ofEsimAccess('returns wrong types', { garbage: 3, garbageKind: 'wrong_types' }),
  ofEsimAccess('truncates responses', { garbage: 3, garbageKind: 'cut' }),
  ofEsimAccess('is too slow', { slow: 4, slowMs: TOO_SLOW_MS }),
  ofEsimAccess('allocates slowly', { allocatingLooks: 2 }),
  ofEsimAccess('denies an order that it sold', { hiddenLooks: 1 }),
  ofEsimAccess('is sold out', { stock: 2 }),
  ofEsimAccess('has changed its price', {
    refuse: { path: 'esim/order', code: '200005', count: 2, after: 0 },
  }),
  ofZendit('loses responses', { dropAfterCommit: 5 }),
  ofZendit('loses orders', { dropBeforeCommit: 5 }),
  ofZendit('is busy', { busy: 8 }),
  ofZendit('is unavailable', { unavailable: 8 }),
  ofZendit('is unavailable after selling', { unavailableAfterCommit: 4 }),
  ofZendit('returns HTML', { badAnswer: 'html', badAnswers: 4, badAnswersTakeEffect: true }),
  ofZendit('returns another shape', { badAnswer: 'wrongShape', badAnswers: 3, badAnswersTakeEffect: false }),
  ofZendit('is slow to complete', { looks: 3 }),
  ofZendit('denies an order that it sold', { readLagMs: LAG_MS }),
  ofZendit('fails some purchases', { outcomes: [null, 'OUT_OF_STOCK', null, 'PROVIDER_ERROR'] }),
  ofZendit('has changed its price', { outcomes: ['PRICE_CHANGED', null, 'PRICE_CHANGED'] }),
  ofZendit('is sold out', { outOfStock: true }),
];

/** Resets every switch. */
const PROVIDERS_CALM: readonly ProviderFault[] = [
  ofEsimAccess('works again', {
    ...{ dropAfterCommit: 0, dropBeforeCommit: 0, busy: 0, garbage: 0, slow: 0, slowMs: 0 },
    ...{ allocatingLooks: 0, hiddenLooks: 0, stock: null, refuse: null },
  }),
  ofZendit('works again', { reset: true }),
];
