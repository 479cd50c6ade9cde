import { setTimeout as delay } from 'node:timers/promises';
import {
  callProvider,
  ProviderOutcomeUnknown,
  ProviderUnavailable,
  type Wholesaler,
} from '../../providers/index.js';

/** For how long one question is asked again. */
const PATIENCE_MS = 10_000;
const PAUSE_MS = 500;
/** An upstream that fails this often in a row is left alone: each failure costs all the patience. */
const MAX_FAILURES_IN_A_ROW = 2;

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
    if (this.failuresInARow >= MAX_FAILURES_IN_A_ROW)
      throw new UpstreamSilent(new Error('it has not answered before'));
    const deadline = performance.now() + PATIENCE_MS;
    for (;;) {
      this.stopping.throwIfAborted();
      try {
        const answer = await callProvider(this.wholesaler, (signal) =>
          question(this.wholesaler, AbortSignal.any([signal, this.stopping])),
        );
        this.failuresInARow = 0;
        return answer;
      } catch (error) {
        this.stopping.throwIfAborted();
        await this.waitAfter(error, deadline);
      }
    }
  }

  /** @throws UpstreamSilent when the patience would be over; the error itself when it is no word of an upstream */
  private async waitAfter(error: unknown, deadline: number): Promise<void> {
    if (!(error instanceof ProviderUnavailable || error instanceof ProviderOutcomeUnknown)) throw error;
    const waitMs = PAUSE_MS + (error instanceof ProviderUnavailable ? error.retryAfterMs : 0);
    if (performance.now() + waitMs > deadline) {
      this.failuresInARow += 1;
      throw new UpstreamSilent(error);
    }
    await delay(waitMs, undefined, { signal: this.stopping });
  }
}
