import type { Cleanups } from './cleanups.js';
import type { BenchOptions } from './options.js';
import { format, type Section } from './report/report.js';
import { AGE_MS, Aging } from './soak/aging.js';
import { SoakBed } from './soak/bed.js';
import type { CallReport } from './soak/caller.js';
import type { LockWait } from './soak/lock-waits.js';
import { takeSample } from './soak/sampler.js';
import {
  describeWaits,
  FIRST_PERIOD_MINUTES,
  soakTable,
  type TimedSample,
  verdicts,
  WARM_UP_MINUTES,
} from './soak/verdict.js';

const MINUTE_MS = 60_000;
const CALIBRATION_MS = 20_000;

/** Does anything grow while the service runs on, and does anybody wait for a lock (D44)? */
export async function benchSoak(
  { minutes, quick }: BenchOptions,
  cleanups: Cleanups,
): Promise<readonly Section[]> {
  const bed = await SoakBed.open(cleanups);
  const limit = await bed.calibrate(quick ? CALIBRATION_MS / 4 : CALIBRATION_MS);
  const rate = Math.max(1, Math.floor(limit / 2));
  process.stderr.write(`soak: at most ${format(limit)} calls/s, so ${rate} calls/s for ${minutes} min\n`);
  const aging = cleanups.stopping(await Aging.open(bed.server.url(bed.database)));
  const soak = new Soak(bed, aging, rate);
  await bed.lockWaits.read();
  await soak.run(minutes, stopOnSignal());
  return [
    {
      title: `Soak: ${soak.samples.length} of ${minutes} minutes at ${rate} calls/s, half of ${format(limit)}`,
      rows: [],
      table: soakTable(soak.samples),
      notes: [
        ...verdicts(soak.samples, soak.waits, soak.errors),
        ...describeWaits(soak.waits),
        `Columns begin after ${WARM_UP_MINUTES} min; the first retention period ends after ${FIRST_PERIOD_MINUTES} (purges run every 10).`,
        `Retention is a day, the shortest; rows of ${AGE_MS / MINUTE_MS} min ago are made 3 days older each minute by SQL (${soak.aged.toLocaleString('en')} rows),`,
        'moved from the partition of today to one of then: what is bloat of today’s partition by that is the bench’s own.',
        'Of 100 calls 10 place Sandbox orders, 70 read, 18 poll the feed, 2 are the portal’s; roles apart, one process each.',
      ],
    },
  ];
}

/** The first Ctrl-C ends the soak with what was measured so far, a second one ends it at once. */
function stopOnSignal(): AbortSignal {
  const stopping = new AbortController();
  for (const signal of ['SIGINT', 'SIGTERM'] as const) {
    process.removeAllListeners(signal);
    process.once(signal, () => {
      process.stderr.write('soak: ending with what was measured so far\n');
      stopping.abort();
      process.once(signal, () => process.exit(1));
    });
  }
  return stopping.signal;
}

class Soak {
  readonly samples: TimedSample[] = [];
  readonly waits: LockWait[] = [];
  readonly errors: Record<string, number> = {};
  aged = 0;

  constructor(
    private readonly bed: SoakBed,
    private readonly aging: Aging,
    private readonly rate: number,
  ) {}

  async run(minutes: number, signal: AbortSignal): Promise<void> {
    for (let minute = 1; minute <= minutes; minute++) {
      try {
        const calls = await this.untilAborted(signal, this.runMinute());
        await this.sample(minute, calls);
      } catch (error) {
        // A signal of the terminal ends the service's processes too.
        if (signal.aborted) return;
        throw error;
      }
    }
  }

  private async runMinute(): Promise<CallReport> {
    const [calls] = await Promise.all([this.bed.caller.pace(this.rate, MINUTE_MS), this.age()]);
    return calls;
  }

  /** The worker may drop the very day that rows are moved to: they are moved in the next minute. */
  private async age(): Promise<void> {
    try {
      this.aged += await this.aging.run();
    } catch (error) {
      process.stderr.write(`soak: rows are not made older: ${(error as Error).message}\n`);
    }
  }

  private async untilAborted<T>(signal: AbortSignal, work: Promise<T>): Promise<T> {
    const aborted = new Promise<never>((_, reject) => {
      if (signal.aborted) reject(new Error('ended'));
      signal.addEventListener('abort', () => reject(new Error('ended')), { once: true });
    });
    work.catch(() => undefined);
    return Promise.race([work, aborted]);
  }

  private async sample(minute: number, calls: CallReport): Promise<void> {
    for (const [name, count] of Object.entries(calls.errors))
      this.errors[name] = (this.errors[name] ?? 0) + count;
    const waits = await this.bed.lockWaits.read();
    this.waits.push(...waits);
    const { server, database, processes } = this.bed;
    const longestWaitMs = Math.max(0, ...waits.map(({ waitedMs }) => waitedMs));
    const sample = {
      ...(await takeSample(server, database, processes)),
      'longest lock wait (ms)': longestWaitMs,
      'callers: p95 (ms)': calls.p95Ms,
      'callers: answered (/s)': calls.calls / calls.seconds,
    };
    this.samples.push({ minute, sample });
    const shown = ['api: RSS (MB)', 'worker: RSS (MB)', 'database (MB)', 'queue: open orders'].map(
      (name) => `${name} ${format(sample[name as keyof typeof sample] ?? NaN)}`,
    );
    process.stderr.write(
      `soak ${minute} min: p95 ${format(calls.p95Ms)} ms, ${shown.join(', ')}, longest lock wait ${format(longestWaitMs)} ms, errors ${JSON.stringify(calls.errors)}\n`,
    );
  }
}
