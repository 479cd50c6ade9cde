import { setTimeout as delay } from 'node:timers/promises';
import { Injectable } from '@nestjs/common';
import {
  callProvider,
  type LiveProvider,
  type ProviderCost,
  ProviderOutcomeUnknown,
  ProviderRegistry,
  ProviderUnavailable,
} from '../../providers/index.js';
import type { Difference } from '../difference.js';
import { orderDifferences, topupDifferences } from './provider-differences.js';
import { ProviderSubjectsRepository } from './provider-subjects.repository.js';

/** What one provider was asked. */
export interface ComparedProvider {
  readonly provider: string;
  readonly orders: number;
  readonly topups: number;
  /** Null when it did not say. */
  readonly balance: ProviderCost | null;
  readonly differences: readonly Difference[];
  /** What could not be compared, and why. */
  readonly unanswered: readonly string[];
}

/**
 * Asks the providers about what has ended here since a time, by our references, and compares. Only asks. What
 * changed here while it was asked about is left to the next run.
 */
@Injectable()
export class CompareProviders {
  constructor(
    private readonly providers: ProviderRegistry,
    private readonly subjects: ProviderSubjectsRepository,
  ) {}

  /** @throws whatever `stopping` was aborted with */
  async execute(since: Date, stopping: AbortSignal): Promise<readonly ComparedProvider[]> {
    const { liveProviders } = this.providers;
    const compared = await Promise.all(liveProviders.map((each) => this.compare(each, since, stopping)));
    const known = new Set(liveProviders.map(({ name }) => name));
    const unknown = (await this.subjects.listProviders(since)).filter((name) => !known.has(name));
    return [...compared, ...unknown.map(notConnected)];
  }

  private async compare(
    liveProvider: LiveProvider,
    since: Date,
    stopping: AbortSignal,
  ): Promise<ComparedProvider> {
    const { name: provider, readLagMs } = liveProvider;
    const client = new RetryingProviderClient(liveProvider, stopping);
    const differences: Difference[] = [];
    const unanswered: string[] = [];
    const attempt = async <T>(what: string, run: () => Promise<T>): Promise<T | null> => {
      try {
        return await run();
      } catch (error) {
        if (!(error instanceof ProviderNotAnswering)) throw error;
        unanswered.push(`${what}: ${error.message}`);
        return null;
      }
    };
    const balance = await attempt('balance', () => client.ask((each, signal) => each.getBalance(signal)));
    const orders = await this.subjects.listOrderIds({ provider, since, readLagMs });
    for (const id of orders)
      differences.push(...((await attempt(id, () => this.compareOrder(client, id))) ?? []));
    const topups = await this.subjects.listTopupIds({ provider, since, readLagMs });
    for (const id of topups)
      differences.push(...((await attempt(id, () => this.compareTopup(client, id))) ?? []));
    return { provider, orders: orders.length, topups: topups.length, balance, differences, unanswered };
  }

  private async compareOrder(client: RetryingProviderClient, id: string): Promise<readonly Difference[]> {
    const order = await this.subjects.findOrder(id);
    if (!order) return [];
    const purchases = await client.ask((each, signal) =>
      each.listPurchases(order.request, order.endedAt, signal),
    );
    const differences = orderDifferences(client.liveProvider.name, order, purchases);
    return isSame(order, await this.subjects.findOrder(id)) ? differences : [];
  }

  private async compareTopup(client: RetryingProviderClient, id: string): Promise<readonly Difference[]> {
    const topup = await this.subjects.findTopup(id);
    if (!topup) return [];
    const state = await client.ask((each, signal) => each.findTopup(topup.request, signal, 'poll'));
    return topupDifferences(client.liveProvider.name, topup, state);
  }
}

function notConnected(provider: string): ComparedProvider {
  const unanswered = ['not connected: nothing that was given to it was compared'];
  return { provider, orders: 0, topups: 0, balance: null, differences: [], unanswered };
}

function isSame(before: unknown, after: unknown): boolean {
  return JSON.stringify(before) === JSON.stringify(after);
}

/** For how long one question is asked again. */
const RETRY_BUDGET_MS = 10_000;
const PAUSE_MS = 500;
/** A provider that fails this often in a row is left alone: each failure costs the whole budget. */
const MAX_FAILURES_IN_A_ROW = 2;

/** The provider gave no answer that could be compared. */
class ProviderNotAnswering extends Error {
  constructor(cause: unknown) {
    super(cause instanceof Error ? cause.message : 'no answer', { cause });
    this.name = 'ProviderNotAnswering';
  }
}

/** Questions to one provider, one after the other: polls give way to orders, so a question may have to wait. */
class RetryingProviderClient {
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
