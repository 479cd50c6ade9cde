import type { Logger } from 'pino';
import { endsWithin } from '../../common/ends-within.js';
import { Sweeper } from '../sweeping/index.js';
import { LaneRunner } from './lane-runner.js';
import type { WakeUps } from './wake-ups.js';

/** The table behind lanes of leased work: it alone says what is due, and whose it is. */
export interface LeaseTable<Lease> {
  /** Leases up to `slots` due items of the lane, oldest due first. */
  claim(lane: string, slots: number): Promise<readonly Lease[]>;
  /** When the lane has something due next that nobody holds; null for nothing. */
  nextDueAt(lane: string): Promise<Date | null>;
  /** Lanes that have something due and nobody at it: their wake-up was lost (D1). */
  listLanesDue(limit: number): Promise<readonly string[]>;
  /** Extends those of the leases that are still ours. */
  renew(leases: readonly Lease[]): Promise<void>;
}

export interface LeasedLanesOptions<Lease> {
  /** As it appears in the log: `topups`. */
  readonly name: string;
  readonly table: LeaseTable<Lease>;
  readonly wakeUps: WakeUps;
  /** Items of one lane under way at once in this process. */
  readonly slotsPerLane: number;
  readonly totalSlots: number;
  readonly sweepIntervalMs: number;
  readonly leaseMs: number;
  /** The time of a process's whole stop. */
  readonly shutdownTimeoutMs: number;
  readonly logger: Logger;
  /** Does one item and records its outcome. What it throws is logged; the lease then lapses. */
  perform(lease: Lease): Promise<void>;
}

/** The part of a stop's time that items under way may still take. */
const DRAIN_SHARE = 0.75;
const LANES_PER_SWEEP = 500;
/** What is due and was not claimed is locked by somebody for a moment: no hot loop. */
const SHORTEST_WAIT_MS = 25;

/** Works off a table's lanes: on wake-ups, by a sweep where those were lost, with leases kept alive meanwhile. */
export class LeasedLanes<Lease> {
  private readonly runner: LaneRunner<Lease>;
  private readonly sweeper: Sweeper;
  private readonly heartbeat: Sweeper;
  private readonly held = new Set<Lease>();
  private stopping: Promise<void> | null = null;

  constructor(private readonly options: LeasedLanesOptions<Lease>) {
    const { name, table, wakeUps, logger, slotsPerLane, totalSlots, sweepIntervalMs, leaseMs } = options;
    this.runner = new LaneRunner(
      {
        claim: (lane, slots) => this.claim(lane, slots),
        nextDueAt: (lane) => table.nextDueAt(lane),
        perform: (lease) => this.perform(lease),
      },
      {
        slotsPerLane,
        totalSlots,
        logger,
        wakeAt: (lane, at) =>
          wakeUps.requestAt(lane, new Date(Math.max(at.getTime(), Date.now() + SHORTEST_WAIT_MS))),
      },
    );
    this.sweeper = new Sweeper({
      name: `${name}.due`,
      intervalMs: sweepIntervalMs,
      logger,
      run: async () => (await table.listLanesDue(LANES_PER_SWEEP)).forEach((lane) => this.wake(lane)),
    });
    this.heartbeat = new Sweeper({
      name: `${name}.leases`,
      intervalMs: leaseMs / 3,
      logger,
      run: async () => (this.held.size > 0 ? table.renew([...this.held]) : undefined),
    });
  }

  start(): void {
    this.sweeper.start();
    this.heartbeat.start();
  }

  /**
   * Claims nothing more and waits for what is under way, up to its share of the stop's time, its leases kept alive
   * until then. What an upstream has not answered by then is left: its lease lapses and it is asked for by its
   * reference. Every call answers the same stop: Nest waits for hooks one by one, so it is begun in `onModuleDestroy`,
   * where every drain of the process begins, and awaited in `beforeApplicationShutdown`.
   */
  stop(): Promise<void> {
    return (this.stopping ??= this.drain());
  }

  wake(lane: string): void {
    this.runner.wake(lane);
  }

  private async drain(): Promise<void> {
    const ended = this.runner.stop();
    await this.sweeper.stop();
    if (!(await endsWithin(ended, this.options.shutdownTimeoutMs * DRAIN_SHARE))) {
      this.options.logger.warn({ event: `${this.options.name}.left`, count: this.held.size }, 'stopping');
    }
    await this.heartbeat.stop();
  }

  private async claim(lane: string, slots: number): Promise<readonly Lease[]> {
    const leases = await this.options.table.claim(lane, slots);
    for (const lease of leases) this.held.add(lease);
    return leases;
  }

  private async perform(lease: Lease): Promise<void> {
    try {
      await this.options.perform(lease);
    } finally {
      this.held.delete(lease);
    }
  }
}
