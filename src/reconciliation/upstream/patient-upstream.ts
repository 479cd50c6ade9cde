import { setTimeout as delay } from 'node:timers/promises';
import {
  callProvider,
  ProviderOutcomeUnknown,
  ProviderUnavailable,
  type Wholesaler,
} from '../../providers/index.js';

const MAX_TRIES = 6;
const LONGEST_WAIT_MS = 5_000;
const PAUSE_MS = 500;
/** An upstream that fails this often in a row is left alone: each failure may cost a whole deadline. */
const MAX_FAILURES_IN_A_ROW = 3;

/** The upstream gave no answer that could be compared. */
export class UpstreamSilent extends Error {
  constructor(cause: unknown) {
    super(cause instanceof Error ? cause.message : 'no answer', { cause });
    this.name = 'UpstreamSilent';
  }
}

/** Questions to one wholesaler, one after the other: polls give way to orders, so a question may have to wait. */
export class PatientUpstream {
  private failuresInARow = 0;

  constructor(
    readonly wholesaler: Wholesaler,
    private readonly stopping: AbortSignal,
  ) {}

  /** @throws UpstreamSilent; whatever `stopping` was aborted with */
  async ask<T>(question: (wholesaler: Wholesaler, signal: AbortSignal) => Promise<T>): Promise<T> {
    if (this.failuresInARow >= MAX_FAILURES_IN_A_ROW) throw new UpstreamSilent('it does not answer');
    for (let tries = 1; ; tries++) {
      this.stopping.throwIfAborted();
      try {
        const answer = await callProvider(this.wholesaler, (signal) =>
          question(this.wholesaler, AbortSignal.any([signal, this.stopping])),
        );
        this.failuresInARow = 0;
        return answer;
      } catch (error) {
        this.stopping.throwIfAborted();
        if (!(error instanceof ProviderUnavailable || error instanceof ProviderOutcomeUnknown)) throw error;
        if (tries >= MAX_TRIES || (error instanceof ProviderOutcomeUnknown && tries >= 2)) {
          this.failuresInARow += 1;
          throw new UpstreamSilent(error);
        }
        const waitMs = error instanceof ProviderUnavailable ? error.retryAfterMs : 0;
        await delay(Math.min(LONGEST_WAIT_MS, waitMs + PAUSE_MS), undefined, { signal: this.stopping });
      }
    }
  }
}
