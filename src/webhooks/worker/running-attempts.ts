import { isTransientConflict } from '../../infra/database/index.js';
import type { AttemptPhase } from '../delivery.js';
import { PhaseClock } from './attempt-result.js';
import type { DeliveriesRepository, StartedDelivery } from './deliveries.repository.js';

type Started = Pick<StartedDelivery, 'id' | 'fence'>;

interface RunningAttempt {
  readonly delivery: Started;
  readonly clock: PhaseClock;
  /** The phase in the delivery's row; null before the first write. */
  stored: AttemptPhase | null;
}

/** Age from which an attempt's phase is stored. Nearly all attempts end earlier, and cost no write. */
const STORED_AFTER_MS = 1_000;
/** Each delivery of a statement reads all phases of it, and a recorded outcome may wait for the statement. */
const MAX_PER_STATEMENT = 200;

/** The attempts of this process that are being sent. Keeps `current_attempt.phase` of the slow ones up to date. */
export class RunningAttempts {
  private readonly running = new Set<RunningAttempt>();

  constructor(private readonly deliveries: Pick<DeliveriesRepository, 'storePhases'>) {}

  /** Times `send` and knows its phase until it settles. */
  async watch<T>(delivery: Started, send: (clock: PhaseClock) => Promise<T>): Promise<T> {
    const attempt: RunningAttempt = { delivery, clock: new PhaseClock(), stored: null };
    this.running.add(attempt);
    try {
      return await send(attempt.clock);
    } finally {
      this.running.delete(attempt);
    }
  }

  /** Stores the changed phases of attempts that have lasted a second. @throws a database error */
  async storePhases(): Promise<void> {
    const startedBefore = performance.now() - STORED_AFTER_MS;
    const changed = [...this.running].filter(
      ({ clock, stored }) => clock.startedAt < startedBefore && clock.phase !== stored,
    );
    for (let i = 0; i < changed.length; i += MAX_PER_STATEMENT)
      await this.store(changed.slice(i, i + MAX_PER_STATEMENT));
  }

  private async store(attempts: readonly RunningAttempt[]): Promise<void> {
    const given = attempts.map(({ delivery, clock }) => ({
      id: delivery.id,
      fence: delivery.fence,
      phase: clock.phase,
    }));
    try {
      const stored = await this.deliveries.storePhases(given);
      attempts.forEach((attempt, i) => {
        if (stored.has(attempt.delivery.id)) attempt.stored = given[i]!.phase;
      });
    } catch (error) {
      // One of the attempts was recorded meanwhile, which moved its row. The next run stores the others.
      if (!isTransientConflict(error)) throw error;
    }
  }
}
