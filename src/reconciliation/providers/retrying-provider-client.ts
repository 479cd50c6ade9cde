import { setTimeout as delay } from 'node:timers/promises';
import {
  callProvider,
  type LiveProvider,
  ProviderOutcomeUnknown,
  ProviderUnavailable,
} from '../../providers/index.js';

/** Time limit for retries of one query. */
const RETRY_BUDGET_MS = 10_000;
const PAUSE_MS = 500;
/**
 * After this many consecutive failures the rest of the page is skipped, because each failure costs the full time limit.
 */
const MAX_FAILURES_IN_A_ROW = 2;

/** The provider gave no response that could be compared. */
export class ProviderNotAnswering extends Error {
  constructor(cause: unknown) {
    super(cause instanceof Error ? cause.message : 'no response', { cause });
    this.name = 'ProviderNotAnswering';
  }
}

/** Runs one page's queries to one provider: polls yield to orders, so a query may have to wait. */
export class RetryingProviderClient {
  private failuresInARow = 0;

  constructor(
    readonly liveProvider: LiveProvider,
    private readonly stopping: AbortSignal,
  ) {}

  /** @throws ProviderNotAnswering; the abort reason of `stopping` */
  async ask<T>(question: (liveProvider: LiveProvider, signal: AbortSignal) => Promise<T>): Promise<T> {
    if (this.failuresInARow >= MAX_FAILURES_IN_A_ROW)
      throw new ProviderNotAnswering(new Error('skipped: it did not respond to earlier calls'));
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

  /**
   * @throws ProviderNotAnswering when the time limit would be exceeded; the error itself when it is not a provider's
   */
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
