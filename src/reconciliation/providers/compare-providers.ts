import { Inject, Injectable } from '@nestjs/common';
import { APP_CONFIG, type AppConfig } from '../../config/index.js';
import { type LiveProvider, ProviderRegistry } from '../../providers/index.js';
import type { Difference } from '../difference.js';
import type { Part, Step, Unanswered } from '../steps.js';
import { orderDifferences, topupDifferences } from './provider-differences.js';
import {
  ProviderSubjectsRepository,
  ROWS_PER_SUBJECT,
  type SubjectKind,
} from './provider-subjects.repository.js';
import { ProviderNotAnswering, RetryingProviderClient } from './retrying-provider-client.js';

/** Maximum concurrent queries per provider: its rate limiter admits few waiting polls and would refuse more. */
const AT_ONCE = 3;
const NOT_CONNECTED = 'not connected, so its purchases were not compared';

/**
 * Looks up purchases that ended since a given time at their providers, by our references, and compares them with our
 * records. A step is a page of orders or top-ups (D27). Read-only. A purchase that changes during the query is left to
 * the next run.
 */
@Injectable()
export class CompareProviders {
  private readonly pageSize: number;

  constructor(
    private readonly providers: ProviderRegistry,
    private readonly subjects: ProviderSubjectsRepository,
    @Inject(APP_CONFIG) { reconcilePageSize }: Pick<AppConfig, 'reconcilePageSize'>,
  ) {
    this.pageSize = reconcilePageSize;
  }

  /** Parts that may be walked concurrently: those of each provider, and one for providers that are not connected. */
  partsByProvider(since: Date): readonly (readonly Part[])[] {
    const ofProviders = this.providers.liveProviders.map((liveProvider): Part[] => {
      const { name: provider } = liveProvider;
      const subjects = (kind: SubjectKind): Part => ({
        name: `provider:${provider}:${kind}`,
        about: { provider, of: kind },
        step: (cursor, _progress, stopping) => this.comparePage(liveProvider, kind, since, cursor, stopping),
      });
      const balance: Part = {
        name: `provider:${provider}:balance`,
        about: { provider, of: 'balance' },
        step: (_cursor, _progress, stopping) =>
          askBalance(new RetryingProviderClient(liveProvider, stopping)),
      };
      return [balance, subjects('order'), subjects('topup')];
    });
    const unconnected: Part = {
      name: 'provider:unconnected',
      step: (cursor) => this.lookForUnconnected(since, cursor),
    };
    return [...ofProviders, [unconnected]];
  }

  /** Reads orders, then top-ups, until it finds one of a provider that is not connected. */
  private async lookForUnconnected(since: Date, cursor: string): Promise<Step> {
    const [kind, after = ''] = (cursor === '' ? 'order:' : cursor).split(':') as [SubjectKind, string?];
    const known = this.providers.liveProviders.map(({ name }) => name);
    const limit = this.pageSize * ROWS_PER_SUBJECT;
    const found = await this.subjects.listOtherProviders(kind, since, known, after, limit);
    const unanswered = found.providers.map((provider) => ({ provider, what: NOT_CONNECTED }));
    const nextKind = kind === 'order' ? 'topup:' : null;
    const next = found.cursor === null ? nextKind : `${kind}:${found.cursor}`;
    return { cursor: unanswered.length > 0 ? null : next, rowsRead: 0, differences: [], unanswered };
  }

  private async comparePage(
    liveProvider: LiveProvider,
    kind: SubjectKind,
    since: Date,
    after: string,
    stopping: AbortSignal,
  ): Promise<Step> {
    const { name: provider, readLagMs } = liveProvider;
    const window = { provider, since, readLagMs };
    const { ids, cursor } = await this.subjects.listPage(kind, window, after, this.pageSize);
    const client = new RetryingProviderClient(liveProvider, stopping);
    const compared = await mapAtOnce(ids, AT_ONCE, (id) =>
      answerOf(provider, id, () =>
        kind === 'order' ? this.compareOrder(client, id) : this.compareTopup(client, id),
      ),
    );
    return {
      cursor,
      rowsRead: ids.length,
      differences: compared.flatMap(({ answer }) => answer ?? []),
      unanswered: compared.flatMap(({ unanswered }) => unanswered),
    };
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

async function askBalance(client: RetryingProviderClient): Promise<Step> {
  const { answer, unanswered } = await answerOf(client.liveProvider.name, 'balance', () =>
    client.ask((each, signal) => each.getBalance(signal)),
  );
  return { cursor: null, rowsRead: 0, differences: [], unanswered, balance: answer };
}

interface Answer<T> {
  /** Null when there was no response. */
  readonly answer: T | null;
  readonly unanswered: readonly Unanswered[];
}

async function answerOf<T>(provider: string, what: string, question: () => Promise<T>): Promise<Answer<T>> {
  try {
    return { answer: await question(), unanswered: [] };
  } catch (error) {
    if (!(error instanceof ProviderNotAnswering)) throw error;
    return { answer: null, unanswered: [{ provider, what: `${what}: ${error.message}` }] };
  }
}

/**
 * Results in the order of `items`. After an error no further item starts, and it throws once the running ones have
 * ended.
 */
async function mapAtOnce<Item, Result>(
  items: readonly Item[],
  atOnce: number,
  map: (item: Item) => Promise<Result>,
): Promise<readonly Result[]> {
  const results: Result[] = [];
  let next = 0;
  const runs = Array.from({ length: Math.min(atOnce, items.length) }, async () => {
    try {
      for (let index = next++; index < items.length; index = next++)
        results[index] = await map(items[index]!);
    } catch (error) {
      next = items.length;
      throw error;
    }
  });
  const failed = (await Promise.allSettled(runs)).find((run) => run.status === 'rejected');
  if (failed) throw failed.reason;
  return results;
}

function isSame(before: unknown, after: unknown): boolean {
  return JSON.stringify(before) === JSON.stringify(after);
}
