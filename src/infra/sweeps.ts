import type { Logger } from 'pino';
import {
  type BeforeApplicationShutdown,
  Global,
  Inject,
  Injectable,
  Module,
  type OnApplicationBootstrap,
  type OnModuleDestroy,
} from '@nestjs/common';
import { Registry } from 'prom-client';
import { LOGGER } from './logging.js';
import { counterIn, gaugeIn, METRICS } from './metrics.js';

/** Result of a run that found nothing to do. */
export const NOTHING_DUE = Symbol('nothing due');

export interface SweeperOptions {
  /** Name in the log: `esims.expiry_live`. */
  readonly name: string;
  /** From the end of one run to the start of the next. */
  readonly intervalMs: number;
  /** Same after a run that returned `NOTHING_DUE`; defaults to `intervalMs`. */
  readonly idleIntervalMs?: number;
  /** From the start of the process to the first run; default 0. */
  readonly firstAfterMs?: number;
  readonly logger: Logger;
  /**
   * Only the result `NOTHING_DUE` has a meaning.
   * @param stopping check it between the steps of long work: shutdown waits for the current run
   */
  run(stopping: AbortSignal): Promise<unknown>;
}

/**
 * Runs a function repeatedly, never twice at once. A failing run is logged, and the next one follows: PostgreSQL may be
 * down for a while, and a sweep must survive that.
 */
export class Sweeper {
  private timer: NodeJS.Timeout | null = null;
  private current: Promise<void> = Promise.resolve();
  private readonly stopping = new AbortController();

  constructor(private readonly options: SweeperOptions) {}

  /** @param afterMs delay until its first run */
  start(afterMs = 0): void {
    if (afterMs > 0) this.timer = setTimeout(() => this.start(), afterMs);
    else this.current = this.runOnce();
  }

  /** Prevents further runs and waits for the current one. */
  async stop(): Promise<void> {
    this.stopping.abort();
    if (this.timer) clearTimeout(this.timer);
    await this.current;
  }

  private async runOnce(): Promise<void> {
    const { intervalMs, idleIntervalMs = intervalMs } = this.options;
    let found: unknown;
    try {
      found = await this.options.run(this.stopping.signal);
    } catch (error) {
      const { name, logger } = this.options;
      logger.warn(
        { event: 'sweep.failed', sweep: name, err: error },
        'sweep failed; the next run will retry',
      );
    }
    if (this.stopping.signal.aborted) return;
    this.timer = setTimeout(() => this.start(), found === NOTHING_DUE ? idleIntervalMs : intervalMs);
  }
}

/**
 * Delay between the first runs of two sweeps, and therefore between all later ones: together they would take every
 * connection.
 */
const APART_MS = 25;

/** For deferrable sweeps, such as purges: a starting process competes for connections with those that serve. */
export const AFTER_START_MS = 5_000;

/** The sweeps of a worker process: they start after the app, and stop before it. */
@Injectable()
export class Sweeps implements OnApplicationBootstrap, OnModuleDestroy, BeforeApplicationShutdown {
  private readonly sweepers: { readonly sweeper: Sweeper; readonly firstAfterMs: number }[] = [];
  private isRunning = false;

  constructor(
    @Inject(LOGGER) private readonly logger: Logger,
    @Inject(METRICS) private readonly metrics: Registry = new Registry(),
  ) {}

  /** Registers a sweep, in a constructor or later; a later one starts immediately. */
  register(sweep: Omit<SweeperOptions, 'logger'>): void {
    const { firstAfterMs = 0 } = sweep;
    const run = watched(this.metrics, sweep);
    const sweeper = new Sweeper({ ...sweep, run, logger: this.logger });
    this.sweepers.push({ sweeper, firstAfterMs });
    if (this.isRunning) sweeper.start(firstAfterMs);
  }

  onApplicationBootstrap(): void {
    this.isRunning = true;
    this.sweepers.forEach(({ sweeper, firstAfterMs }, index) =>
      sweeper.start(firstAfterMs + index * APART_MS),
    );
  }

  /** The first hook of a shutdown; the workers drain at the same time. */
  onModuleDestroy(): void {
    for (const { sweeper } of this.sweepers) void sweeper.stop();
  }

  async beforeApplicationShutdown(): Promise<void> {
    await Promise.all(this.sweepers.map(({ sweeper }) => sweeper.stop()));
  }
}

/** Counts the runs and records the last success, so that operators notice a failing purge before the disk is full. */
function watched(
  metrics: Registry,
  { name: sweep, run }: Pick<SweeperOptions, 'name' | 'run'>,
): SweeperOptions['run'] {
  const runs = counterIn(metrics, {
    name: 'sweep_runs_total',
    help: 'Sweep runs of this process by outcome.',
    labelNames: ['sweep', 'outcome'],
  });
  const succeededAt = gaugeIn(metrics, {
    name: 'sweep_last_success_timestamp_seconds',
    help: 'Time of the last successful run of the sweep in this process, by its clock.',
    labelNames: ['sweep'],
  });
  for (const outcome of ['ok', 'failed']) runs.inc({ sweep, outcome }, 0);
  return async (stopping) => {
    try {
      const found = await run(stopping);
      runs.inc({ sweep, outcome: 'ok' });
      succeededAt.set({ sweep }, Date.now() / 1_000);
      return found;
    } catch (error) {
      runs.inc({ sweep, outcome: 'failed' });
      throw error;
    }
  };
}

@Global()
@Module({ providers: [Sweeps], exports: [Sweeps] })
export class SweepsModule {}
