import { expect, it } from 'vitest';
import { newId } from '../../src/common/ids.js';
import {
  callProvider,
  type LiveProvider,
  placementReference,
  type ProviderOrderRequest,
  type SoldPurchase,
} from '../../src/providers/index.js';
import { newOrder, provision, type ProviderWorld } from './provider-world.js';

/** Lists by time only, because after a restore our references are lost (D54). */
export function describeSoldList(get: () => ProviderWorld): void {
  it('lists purchases since a time with a reference of ours, canceled or not, and no others', async () => {
    const { provider } = get();
    const since = new Date();
    const intent = { partnerId: newId('ptn'), mode: 'live', bought: [] } as const;
    const named = (idempotencyKey: string): ProviderOrderRequest => ({
      ...newOrder(get(), 2),
      reference: placementReference('order', { ...intent, idempotencyKey }),
    });
    const [kept, back] = [named('kept'), named('back')];
    await provision(provider, kept);
    const { profiles } = await provision(provider, back);
    const { reference } = back;
    const esims = profiles.map(({ providerEsimId, iccid }) => ({ providerEsimId, iccid, issuedAt: since }));
    await callProvider(provider, (signal) => provider.cancelOrder({ reference, quantity: 2, esims }, signal));
    await provision(provider, newOrder(get()));
    const sold = await readSold(get().anotherProvider(), since);
    expect(sold.filter((one) => one.reference === kept.reference).map(({ state }) => state)).toEqual([
      'sold',
      'sold',
    ]);
    const taken = sold.filter((one) => one.reference === reference);
    expect(taken.map(({ state }) => state)).toEqual(['taken_back', 'taken_back']);
    expect(taken.map(({ providerEsimId }) => providerEsimId).sort()).toEqual(
      profiles.map(({ providerEsimId }) => providerEsimId).sort(),
    );
    expect(sold).toHaveLength(4);
    expect(new Set(sold.map(({ upstreamPackageId }) => upstreamPackageId))).toEqual(
      new Set([get().basePackage.upstreamPackageId]),
    );
    expect(await readSold(provider, new Date(Date.now() + 3_600_000))).toEqual([]);
  });
}

async function readSold(provider: LiveProvider, since: Date): Promise<readonly SoldPurchase[]> {
  const sold: SoldPurchase[] = [];
  for (let from: number | null = 0; from !== null;) {
    const at: number = from;
    const page = await callProvider(provider, (signal) => provider.soldList.readPage(since, at, signal));
    sold.push(...page.sold);
    from = page.next;
  }
  return sold;
}
