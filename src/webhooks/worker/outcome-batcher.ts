import type { Logger } from 'pino';
import { ConcurrencyLimit } from '../../infra/concurrency-limit.js';
import { mayBeOfOneRow } from '../../infra/database/index.js';
import type { FinishedAttempt } from './attempt-result.js';

interface Waiting {
  readonly attempt: FinishedAttempt;
  resolve(): void;
  reject(error: unknown): void;
}

export interface OutcomeBatcherOptions {
  record(attempts: readonly FinishedAttempt[]): Promise<void>;
  /** How long a batch that PostgreSQL does not take is tried again; the heartbeat keeps the leases meanwhile. */
  readonly patienceMs: number;
  /**
   * Transactions at once, parts of a batch that is taken apart included. More than one, so that a batch that waits for a
   * row lock does not hold up every other endpoint (D34).
   */
  readonly maxInFlight: number;
  readonly logger: Logger;
  /** Told how many attempts a batch has. */
  sized?(attempts: number): void;
}

/** From one batch to the next: a batch costs PostgreSQL as much as ten attempts in it. */
const GATHER_MS = 15;
/** So many that wait leave at once: all that one endpoint may have in flight may be among them. */
const MANY = 16;
const MAX_BATCH = 500;
const FIRST_PAUSE_MS = 100;
const LONGEST_PAUSE_MS = 2_000;

/** Records attempts: one that ends alone at once, those that end within the next few milliseconds together. */
export class OutcomeBatcher {
  private waiting: Waiting[] = [];
  private timer: NodeJS.Timeout | null = null;
  private isDue = false;
  private inFlight = 0;
  private lastLeftAt = -Infinity;

  private readonly writes: ConcurrencyLimit;

  constructor(private readonly options: OutcomeBatcherOptions) {
    this.writes = new ConcurrencyLimit(options.maxInFlight);
  }

  /** Resolves when the attempt is committed. @throws what PostgreSQL says, when it does not take it in time. */
  add(attempt: FinishedAttempt): Promise<void> {
    return new Promise((resolve, reject) => {
      this.waiting.push({ attempt, resolve, reject });
      this.arm();
    });
  }

  private arm(): void {
    if (this.isDue || this.waiting.length === 0 || this.inFlight >= this.options.maxInFlight) return;
    const waitMs = this.lastLeftAt + GATHER_MS - performance.now();
    if (waitMs <= 0 || this.waiting.length >= MANY) {
      this.isDue = true;
      if (this.timer) clearTimeout(this.timer);
      setImmediate(() => void this.flush());
    } else {
      this.timer ??= setTimeout(() => void this.flush(), waitMs);
    }
  }

  private async flush(): Promise<void> {
    this.timer = null;
    this.isDue = false;
    this.lastLeftAt = performance.now();
    const batch = this.waiting.splice(0, MAX_BATCH).sort(byLockOrder);
    this.inFlight++;
    this.options.sized?.(batch.length);
    this.arm();
    await this.write(batch);
    this.inFlight--;
    this.arm();
  }

  /** Never rejects: each attempt's own promise says how it went. */
  private async write(batch: readonly Waiting[]): Promise<void> {
    const deadline = performance.now() + this.options.patienceMs;
    for (let pauseMs = FIRST_PAUSE_MS; ; pauseMs = Math.min(pauseMs * 2, LONGEST_PAUSE_MS)) {
      try {
        await this.record(batch);
        return batch.forEach((item) => item.resolve());
      } catch (error) {
        if (batch.length > 1 && mayBeOfOneRow(error)) return this.writeHalves(batch);
        if (performance.now() + pauseMs > deadline) return this.giveUp(batch, error);
        this.options.logger.warn(
          { event: 'webhook.record_failed', count: batch.length, err: error },
          'trying again',
        );
        await new Promise((resolve) => setTimeout(resolve, pauseMs));
      }
    }
  }

  private record(batch: readonly Waiting[]): Promise<void> {
    return this.writes.run(() => this.options.record(batch.map(({ attempt }) => attempt)));
  }

  /** One row that PostgreSQL does not take, or that another transaction has locked, must not hold up the others. */
  private async writeHalves(batch: readonly Waiting[]): Promise<void> {
    const middle = batch.length >> 1;
    await Promise.all([this.write(batch.slice(0, middle)), this.write(batch.slice(middle))]);
  }

  /** Writes each attempt once more, alone: whatever the error is, one attempt must not fail the others (D43). */
  private async giveUp(batch: readonly Waiting[], error: unknown): Promise<void> {
    const [first, ...others] = batch;
    if (others.length === 0) return first?.reject(error);
    for (const item of batch) {
      await this.record([item]).then(
        () => item.resolve(),
        (cause: unknown) => item.reject(cause),
      );
    }
  }
}

/** Lock order: endpoint, then delivery (D40). */
function byLockOrder({ attempt: a }: Waiting, { attempt: b }: Waiting): number {
  if (a.endpointId !== b.endpointId) return a.endpointId < b.endpointId ? -1 : 1;
  return a.deliveryId < b.deliveryId ? -1 : 1;
}
