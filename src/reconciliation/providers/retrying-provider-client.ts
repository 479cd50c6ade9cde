import { setTimeout as delay } from 'node:timers/promises';
import {
  callProvider,
  type LiveProvider,
  ProviderOutcomeUnknown,
  ProviderUnavailable,
} from '../../providers/index.js';

/** For how long one question is asked again. */
const RETRY_BUDGET_MS = 10_000;
const PAUSE_MS = 500;
/** A provider that fails this often in a row is left alone for the rest of the page: each failure costs the budget. */
const MAX_FAILURES_IN_A_ROW = 2;

/** The provider gave no answer that could be compared. */
export class ProviderNotAnswering extends Error {
  constructor(cause: unknown) {
    super(cause instanceof Error ? cause.message : 'no answer', { cause });
    this.name = 'ProviderNotAnswering';
  }
}

/** The questions of one page to one provider: polls give way to orders, so a question may have to wait. */
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

  /** @throws ProviderNotAnswering when the budget would be spent; the error itself when it is none of a provider */
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
