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
    if (changed.length === 0) return;
    const phases = changed.map(({ clock }) => clock.phase);
    await this.deliveries.storePhases(changed.map(({ delivery }, i) => ({ ...delivery, phase: phases[i]! })));
    changed.forEach((attempt, i) => (attempt.stored = phases[i]!));
  }
}
