import { Injectable } from '@nestjs/common';
import {
  type LiveProvider,
  type PlacementKind,
  ProviderRegistry,
  readPlacementReference,
  type SoldPurchase,
} from '../providers/index.js';
import { ProviderNotAnswering, RetryingProviderClient } from '../reconciliation/index.js';
import type { FoundPurchase } from './unclaimed-purchases.repository.js';

const KINDS: readonly PlacementKind[] = ['order', 'topup'];

/** Result of one provider. */
export interface AskedProvider {
  readonly provider: string;
  /** Purchases by reference. Null when its list could not be read completely. */
  readonly found: readonly FoundPurchase[] | null;
  /** Why the list is incomplete; null when it is complete. */
  readonly failure: string | null;
  /** Kinds that its list does not show: we cannot tell whether those were bought. */
  readonly unlisted: readonly PlacementKind[];
}

/**
 * Reads everything that the providers have sold since a time under our references, known to the database or not (D54).
 */
@Injectable()
export class FindSoldPurchases {
  constructor(private readonly providers: ProviderRegistry) {}

  /** Maximum time for which a provider may not show a placement. */
  get readLagMs(): number {
    return Math.max(0, ...this.providers.liveProviders.map(({ readLagMs }) => readLagMs));
  }

  /** Queries the providers one after the other. @throws the abort reason of `stopping` */
  async find(
    since: Date,
    stopping: AbortSignal,
    onPage: (provider: string, read: number) => void,
  ): Promise<readonly AskedProvider[]> {
    const asked: AskedProvider[] = [];
    for (const provider of this.providers.liveProviders)
      asked.push(await ask(provider, since, stopping, onPage));
    return asked;
  }
}

async function ask(
  provider: LiveProvider,
  since: Date,
  stopping: AbortSignal,
  onPage: (provider: string, read: number) => void,
): Promise<AskedProvider> {
  const { name, soldList } = provider;
  const unlisted = KINDS.filter((kind) => !soldList.kinds.includes(kind));
  const client = new RetryingProviderClient(provider, stopping);
  const purchases = new Map<string, SoldPurchase>();
  try {
    for (let from: number | null = 0; from !== null;) {
      const at: number = from;
      const page = await client.ask((each, signal) => each.soldList.readPage(since, at, signal));
      // Keyed by the provider's id, because a list that shifts while it is read shows some purchases twice.
      for (const purchase of page.sold) purchases.set(purchase.providerEsimId, purchase);
      onPage(name, purchases.size);
      from = page.next;
    }
  } catch (error) {
    if (!(error instanceof ProviderNotAnswering)) throw error;
    return { provider: name, found: null, failure: error.message, unlisted };
  }
  return {
    provider: name,
    found: byReference(name, since, [...purchases.values()]),
    failure: null,
    unlisted,
  };
}

function byReference(
  provider: string,
  since: Date,
  purchases: readonly SoldPurchase[],
): readonly FoundPurchase[] {
  const groups = new Map<string, SoldPurchase[]>();
  for (const purchase of purchases) {
    const group = groups.get(purchase.reference);
    if (group) group.push(purchase);
    else groups.set(purchase.reference, [purchase]);
  }
  return [...groups].flatMap(([reference, group]) => {
    const known = readPlacementReference(reference);
    return known === null ? [] : [toFound(provider, since, reference, known, group)];
  });
}

function toFound(
  provider: string,
  since: Date,
  reference: string,
  known: Pick<FoundPurchase, 'kind' | 'partnerId'>,
  group: readonly SoldPurchase[],
): FoundPurchase {
  const times = group.flatMap(({ soldAt }) => (soldAt === null ? [] : [soldAt.getTime()]));
  return {
    reference,
    provider,
    ...known,
    upstreamPackageId: group.find(({ upstreamPackageId }) => upstreamPackageId)?.upstreamPackageId ?? null,
    sold: group.filter(({ state }) => state !== 'failed').length,
    takenBack: group.filter(({ state }) => state === 'taken_back').length,
    soldAt: times.length === 0 ? since : new Date(Math.min(...times)),
  };
}
