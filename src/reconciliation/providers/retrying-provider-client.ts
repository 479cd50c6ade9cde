import { setTimeout as delay } from 'node:timers/promises';
import {
  callProvider,
  ProviderOutcomeUnknown,
  ProviderUnavailable,
  type LiveProvider,
} from '../../providers/index.js';

/** For how long one question is asked again. */
const RETRY_BUDGET_MS = 10_000;
const PAUSE_MS = 500;
/** A provider that fails this often in a row is left alone: each failure costs all the patience. */
const MAX_FAILURES_IN_A_ROW = 2;

/** The provider gave no answer that could be compared. */
export class ProviderNotAnswering extends Error {
  constructor(cause: unknown) {
    super(cause instanceof Error ? cause.message : 'no answer', { cause });
    this.name = 'ProviderNotAnswering';
  }
}

/** Questions to one provider, one after the other: polls give way to orders, so a question may have to wait. */
export class RetryingProviderClient {
  private failuresInARow = 0;

  constructor(
    readonly liveProvider: LiveProvider,
    private readonly stopping: AbortSignal,
  ) {}

  /** @throws ProviderNotAnswering; whatever `stopping` was aborted with */
  async ask<T>(question: (liveProvider: LiveProvider, signal: AbortSignal) => Promise<T>): Promise<T> {
    if (this.failuresInARow >= MAX_FAILURES_IN_A_ROW)
      throw new ProviderNotAnswering(new Error('it has not answered before'));
    const deadline = performance.now() + RETRY_BUDGET_MS;
    for (;;) {
      this.stopping.throwIfAborted();
      try {
        const answer = await callProvider(this.liveProvider, (signal) =>
          question(this.liveProvider, AbortSignal.any([signal, this.stopping])),
        );
        this.failuresInARow = 0;
        return answer;
      } catch (error) {
        this.stopping.throwIfAborted();
        await this.waitAfter(error, deadline);
      }
    }
  }

  /** @throws ProviderNotAnswering when the patience would be over; the error itself when it is no word of a provider */
  private async waitAfter(error: unknown, deadline: number): Promise<void> {
    if (!(error instanceof ProviderUnavailable || error instanceof ProviderOutcomeUnknown)) throw error;
    const waitMs = PAUSE_MS + (error instanceof ProviderUnavailable ? error.retryAfterMs : 0);
    if (performance.now() + waitMs > deadline) {
      this.failuresInARow += 1;
      throw new ProviderNotAnswering(error);
    }
    await delay(waitMs, undefined, { signal: this.stopping });
  }
}
