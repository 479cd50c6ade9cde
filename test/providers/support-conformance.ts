import { expect, it } from 'vitest';
import {
  callProvider,
  type ProviderCancelRequest,
  type ProviderCancelStatus,
  type ProviderOrderParts,
  type ProviderOrderRequest,
  ProviderOutcomeUnknown,
  ProviderUnavailable,
  type LiveProvider,
} from '../../src/providers/index.js';
import { newOrder, place, provision, type ProviderWorld } from './provider-world.js';

export const NOTHING: ProviderOrderParts = { profiles: [], running: 0, unusable: 0, failure: null };

export function findParts(provider: LiveProvider, order: ProviderOrderRequest): Promise<ProviderOrderParts> {
  return callProvider(provider, (signal) => provider.findParts(order, signal));
}

export function findCancelStatuses(
  provider: LiveProvider,
  request: ProviderCancelRequest,
): Promise<readonly ProviderCancelStatus[]> {
  return callProvider(provider, (signal) => provider.findCancelStatuses(request, signal));
}

/** A provisioned order in the form of a cancel request. */
export async function cancelable(
  provider: LiveProvider,
  order: ProviderOrderRequest,
): Promise<ProviderCancelRequest> {
  const { profiles } = await provision(provider, order);
  const esims = profiles.map(({ providerEsimId, iccid }) => ({
    providerEsimId,
    iccid,
    issuedAt: new Date(),
  }));
  return { reference: order.reference, quantity: order.quantity, esims };
}

/** Read-only lookups that every provider guarantees to support, which resolves orders by hand. */
export function describeSupport(get: () => ProviderWorld): void {
  it('shows support every profile of an order, even in a fresh process', async () => {
    const order = newOrder(get(), 2);
    const { profiles } = await provision(get().provider, order);
    const parts = await findParts(get().anotherProvider(), order);
    expect({ ...parts, profiles: ids(parts) }).toEqual({ ...NOTHING, profiles: ids({ profiles }) });
    expect(await get().sim.purchasesOf(order.reference)).toBe(2);
  });

  it('shows support as many profiles as were bought when a call or a response was lost', async () => {
    for (const lose of ['dropAnswersBeforeCommit', 'dropAnswersAfterCommit'] as const) {
      const order = newOrder(get(), 2);
      await get().sim[lose](1);
      await expect(place(get().provider, order)).rejects.toBeInstanceOf(ProviderOutcomeUnknown);
      const { profiles, running } = await findParts(get().provider, order);
      expect([profiles.length, running]).toEqual([await get().sim.purchasesOf(order.reference), 0]);
    }
  });

  it('shows support nothing for an order that was never placed, and no profile of a refused one', async () => {
    await provision(get().provider, newOrder(get()));
    expect(await findParts(get().provider, newOrder(get(), 2))).toEqual(NOTHING);
    const refused = newOrder(get(), 2);
    await get().sim.outOfStock(true);
    await place(get().provider, refused);
    expect(await findParts(get().provider, refused)).toMatchObject({ profiles: [], running: 0, unusable: 0 });
  });

  it('shows support which eSIMs were canceled, and no longer counts them as provisioned', async () => {
    const { provider } = get();
    const order = newOrder(get(), 2);
    const request = await cancelable(provider, order);
    const cancelStatuses = async () =>
      (await findCancelStatuses(get().anotherProvider(), request)).map(toText);
    expect(await cancelStatuses()).toEqual(request.esims.map((esim) => `${esim.providerEsimId} unused`));
    expect(await get().sim.canceledOf(order.reference)).toBe(0);
    await callProvider(provider, (signal) => provider.cancelOrder(request, signal));
    expect(await cancelStatuses()).toEqual(request.esims.map((esim) => `${esim.providerEsimId} canceled`));
    expect(await findParts(provider, order)).toMatchObject({ profiles: [], running: 0, unusable: 0 });
  });

  it('reports a busy provider to support as unavailable, never as empty', async () => {
    const order = newOrder(get());
    const request = await cancelable(get().provider, order);
    await get().sim.refuseAsBusy(1);
    await expect(findParts(get().provider, order)).rejects.toBeInstanceOf(ProviderUnavailable);
    await get().sim.refuseAsBusy(1);
    await expect(findCancelStatuses(get().provider, request)).rejects.toBeInstanceOf(ProviderUnavailable);
  });
}

/** Like `describeSupport`, for providers behind a network. */
export function describeSupportOverWire(get: () => ProviderWorld): void {
  it('does not treat garbage as a response to support', async () => {
    const order = newOrder(get());
    const request = await cancelable(get().provider, order);
    await get().sim.answerGarbage(1);
    await expect(findParts(get().provider, order)).rejects.toBeInstanceOf(ProviderOutcomeUnknown);
    await get().sim.answerGarbage(1);
    await expect(findCancelStatuses(get().provider, request)).rejects.toBeInstanceOf(ProviderOutcomeUnknown);
  });

  it('reports an eSIM that the provider does not know as unknown', async () => {
    const stranger = {
      providerEsimId: '00000000000000',
      iccid: '8900000000000000009',
      issuedAt: new Date(),
    };
    const request = { reference: 'prv_nobody', quantity: 1, esims: [stranger] };
    expect(await findCancelStatuses(get().provider, request)).toEqual([
      { providerEsimId: stranger.providerEsimId, cancelStatus: 'unknown' },
    ]);
  });
}

function ids({ profiles }: Pick<ProviderOrderParts, 'profiles'>): string[] {
  return profiles.map((profile) => `${profile.providerEsimId} ${profile.matchingId}`).sort();
}

function toText({ providerEsimId, cancelStatus }: ProviderCancelStatus): string {
  return `${providerEsimId} ${cancelStatus}`;
}
