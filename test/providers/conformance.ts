import * as fc from 'fast-check';
import { RepeatLimitReached } from '../../src/providers/http/index.js';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import {
  callProvider,
  type ProviderEsimRef,
  type ProviderOrderRequest,
  ProviderOutcomeUnknown,
  type ProviderProfile,
  ProviderUnavailable,
} from '../../src/providers/index.js';
import { describeSoldList } from './sold-list-conformance.js';
import { describeSupport, describeSupportOverWire } from './support-conformance.js';
import { listPackages } from './listed-packages.js';
import {
  find,
  findTopup,
  newOrder,
  newTopup,
  orderSettled,
  place,
  placeTopup,
  provision,
  recoverOrder,
  recoverTopup,
  topupSettled,
  type ProviderWorld,
} from './provider-world.js';

export type { ProviderSim, ProviderWorld } from './provider-world.js';

/** The guarantees of every provider. Adapters run these tests against their simulators over HTTP. */
export function describeConformance(
  name: string,
  makeWorld: () => Promise<ProviderWorld>,
  { provisioningOnly = false }: { provisioningOnly?: boolean } = {},
): void {
  describe(`${name} keeps the guarantees of the provider port`, () => {
    let world: ProviderWorld;
    beforeEach(async () => {
      world = await makeWorld();
    });
    afterEach(() => world.close());

    describeOrders(() => world);
    describeCancellation(() => world);
    describeTopups(() => world);
    describeBusyUpstream(() => world);
    describeSupport(() => world);
    if (provisioningOnly) return;
    describeBadAnswers(() => world);
    describeReadings(() => world);
    describeSoldList(() => world);
    describeSupportOverWire(() => world);
  });
}

function describeOrders(get: () => ProviderWorld): void {
  it('provisions every eSIM of an order with its own profile', async () => {
    const order = newOrder(get(), 3);
    const { profiles, shortfall } = await provision(get().provider, order);
    expect(shortfall).toBeNull();
    expect(new Set(profiles.map((p) => p.providerEsimId)).size).toBe(3);
    for (const profile of profiles) expectUsable(profile);
    expect(await get().sim.purchasesOf(order.reference)).toBe(3);
  });

  it('buys once when the response to an order is lost after it took effect', async () => {
    const order = newOrder(get(), 2);
    await get().sim.dropAnswersAfterCommit(1);
    await expect(place(get().provider, order)).rejects.toBeInstanceOf(ProviderOutcomeUnknown);
    expect((await recoverOrder(get().provider, order)).state).toBe('provisioned');
    expect(await get().sim.purchasesOf(order.reference)).toBe(2);
  });

  it('buys once when an order is lost in transit', async () => {
    const order = newOrder(get(), 2);
    await get().sim.dropAnswersBeforeCommit(1);
    await expect(place(get().provider, order)).rejects.toBeInstanceOf(ProviderOutcomeUnknown);
    expect(await find(get().provider, order)).toBeNull();
    expect((await recoverOrder(get().provider, order)).state).toBe('provisioned');
    expect(await get().sim.purchasesOf(order.reference)).toBe(2);
  });

  it("finds an earlier process's order after a crash, with the same profiles", async () => {
    const order = newOrder(get(), 2);
    const { profiles } = await provision(get().provider, order);
    const found = await recoverOrder(get().anotherProvider(), order);
    expect(found).toMatchObject({ state: 'provisioned', shortfall: null });
    expect(sorted((found as { profiles: readonly ProviderProfile[] }).profiles)).toEqual(sorted(profiles));
    expect(await get().sim.purchasesOf(order.reference)).toBe(2);
  });

  it('buys nothing when a provisioned order is placed again', async () => {
    const order = newOrder(get(), 2);
    await provision(get().provider, order);
    const again = await place(get().anotherProvider(), order, 'again');
    expect((await orderSettled(get().provider, order, again)).state).toBe('provisioned');
    expect(await get().sim.purchasesOf(order.reference)).toBe(2);
  });

  it('reports an order that was never placed as unknown', async () => {
    await provision(get().provider, newOrder(get()));
    expect(await find(get().provider, newOrder(get()))).toBeNull();
  });

  it('rejects an order for a package that is out of stock, and buys nothing', async () => {
    const order = newOrder(get(), 2);
    await get().sim.outOfStock(true);
    const state = await orderSettled(get().provider, order, await place(get().provider, order));
    expect(state).toMatchObject({ state: 'rejected', failure: { code: 'package_unavailable' } });
    expect(await get().sim.purchasesOf(order.reference)).toBe(0);
  });
}

function describeCancellation(get: () => ProviderWorld): void {
  it('cancels an unused order, and returns the same when it is repeated', async () => {
    const order = newOrder(get(), 2);
    const esims = toRefs((await provision(get().provider, order)).profiles);
    const cancel = () =>
      callProvider(get().provider, (signal) =>
        get().provider.cancelOrder({ reference: order.reference, quantity: 2, esims }, signal),
      );
    expect(await cancel()).toEqual({ state: 'canceled' });
    expect(await get().sim.canceledOf(order.reference)).toBe(2);
    expect(await cancel()).toEqual({ state: 'canceled' });
    expect(await get().sim.canceledOf(order.reference)).toBe(2);
  });

  it('repeats a lost order once, unless the provider documents repeats as the same request', async () => {
    const { provider, sim } = get();
    const order = newOrder(get());
    await sim.dropAnswersBeforeCommit(3);
    await expect(place(provider, order)).rejects.toBeInstanceOf(ProviderOutcomeUnknown);
    await expect(place(provider, order, 'again')).rejects.toBeInstanceOf(ProviderOutcomeUnknown);
    const third =
      provider.repeats.order.repeat === 'undocumented' ? RepeatLimitReached : ProviderOutcomeUnknown;
    await expect(place(provider, order, 'again')).rejects.toBeInstanceOf(third);
    await sim.dropAnswersBeforeCommit(0);
  });
}

function describeTopups(get: () => ProviderWorld): void {
  async function newEsim(): Promise<ProviderEsimRef> {
    return toRefs((await provision(get().provider, newOrder(get()))).profiles)[0]!;
  }

  it('tops up an eSIM', async () => {
    const topup = newTopup(get(), await newEsim());
    const state = await topupSettled(get().provider, topup, await placeTopup(get().provider, topup));
    expect(state.state).toBe('completed');
    expect(await get().sim.topupsOf(topup.reference)).toBe(1);
    expect((await findTopup(get().anotherProvider(), topup))?.state).toBe('completed');
  });

  it('applies a top-up once when its response is lost after it took effect', async () => {
    const topup = newTopup(get(), await newEsim());
    await get().sim.dropAnswersAfterCommit(1);
    await expect(placeTopup(get().provider, topup)).rejects.toBeInstanceOf(ProviderOutcomeUnknown);
    const again = await placeTopup(get().anotherProvider(), topup, 'again');
    expect((await topupSettled(get().provider, topup, again)).state).toBe('completed');
    expect(await get().sim.topupsOf(topup.reference)).toBe(1);
  });

  it('applies a top-up once when it is lost in transit', async () => {
    const topup = newTopup(get(), await newEsim());
    await get().sim.dropAnswersBeforeCommit(1);
    await expect(placeTopup(get().provider, topup)).rejects.toBeInstanceOf(ProviderOutcomeUnknown);
    expect(await findTopup(get().provider, topup)).toBeNull();
    expect((await recoverTopup(get().provider, topup)).state).toBe('completed');
    expect(await get().sim.topupsOf(topup.reference)).toBe(1);
  });

  it('repeats a lost top-up once, unless the provider documents repeats as the same request', async () => {
    const { provider, sim } = get();
    const topup = newTopup(get(), await newEsim());
    await sim.dropAnswersBeforeCommit(3);
    await expect(placeTopup(provider, topup)).rejects.toBeInstanceOf(ProviderOutcomeUnknown);
    await expect(placeTopup(provider, topup, 'again')).rejects.toBeInstanceOf(ProviderOutcomeUnknown);
    const third =
      provider.repeats.topup.repeat === 'undocumented' ? RepeatLimitReached : ProviderOutcomeUnknown;
    await expect(placeTopup(provider, topup, 'again')).rejects.toBeInstanceOf(third);
    await sim.dropAnswersBeforeCommit(0);
  });

  it('reports a top-up that was never placed as unknown', async () => {
    expect(await findTopup(get().provider, newTopup(get(), await newEsim()))).toBeNull();
  });
}

function describeBusyUpstream(get: () => ProviderWorld): void {
  it('reports a busy provider as unavailable or the order as in progress, and orders once it is free', async () => {
    const order = newOrder(get(), 2);
    await get().sim.refuseAsBusy(1);
    const first = await place(get().provider, order).catch((error: unknown) => error);
    if (first instanceof Error) expect(first).toBeInstanceOf(ProviderUnavailable);
    else expect(first).toMatchObject({ state: 'in_progress' });
    expect((await recoverOrder(get().provider, order)).state).toBe('provisioned');
    expect(await get().sim.purchasesOf(order.reference)).toBe(2);
  });
}

function describeBadAnswers(get: () => ProviderWorld): void {
  it('treats garbage as no response, neither as a refusal nor as "not known"', async () => {
    const order: ProviderOrderRequest = newOrder(get());
    for (const call of [place, find, listPackages, readBalance]) {
      await get().sim.answerGarbage(1);
      await expect(call(get().provider, order)).rejects.toBeInstanceOf(ProviderOutcomeUnknown);
    }
    expect((await recoverOrder(get().provider, order)).state).toBe('provisioned');
    expect(await get().sim.purchasesOf(order.reference)).toBe(1);
  });

  it('accepts any callback without throwing', () => {
    fc.assert(
      fc.property(fc.anything(), (body) => {
        expect(Array.isArray(get().provider.hintsOf(body))).toBe(true);
      }),
    );
  });
}

function describeReadings(get: () => ProviderWorld): void {
  it('reads the eSIMs that the provider knows, and omits the others', async () => {
    const { provider } = get();
    const known = toRefs((await provision(provider, newOrder(get(), 3))).profiles);
    const unknown: ProviderEsimRef = {
      providerEsimId: '00000000000000',
      iccid: '8900000000000000009',
      issuedAt: new Date(),
    };
    const readings = await callProvider(provider, (signal) =>
      provider.fetchUsage([...known, unknown], signal),
    );
    expect(readings.map((r) => r.providerEsimId).sort()).toEqual(known.map((r) => r.providerEsimId).sort());
    for (const reading of readings) expect(reading).toMatchObject({ status: 'issued', usedBytes: 0 });
  });

  it('lists its packages with the price that an order is charged', async () => {
    const { provider, basePackage, topupPackage } = get();
    const packages = await listPackages(provider);
    const base = packages.find((p) => p.upstreamId === basePackage.upstreamPackageId && p.kind === 'base');
    const topup = packages.find((p) => p.upstreamId === topupPackage.upstreamPackageId && p.kind === 'topup');
    expect(base?.cost).toEqual(basePackage.unitCost);
    expect(topup?.cost).toEqual(topupPackage.unitCost);
    for (const { coverage, validityDays } of packages) {
      expect(coverage.length).toBeGreaterThan(0);
      expect(validityDays).toBeGreaterThan(0);
    }
    const before = await readBalance(provider);
    await provision(provider, newOrder(get(), 2));
    const after = await readBalance(provider);
    expect(before.micros - after.micros).toBe(2 * basePackage.unitCost.micros);
  });
}

function expectUsable(profile: ProviderProfile): void {
  expect(profile.iccid).toMatch(/^\d{18,20}$/);
  expect(profile.smdpAddress).toMatch(/^[a-z0-9.-]+$/i);
  expect(profile.matchingId).toMatch(/^[A-Z0-9-]+$/i);
}

function toRefs(profiles: readonly ProviderProfile[]): ProviderEsimRef[] {
  return profiles.map(({ providerEsimId, iccid }) => ({ providerEsimId, iccid, issuedAt: new Date() }));
}

function sorted(profiles: readonly ProviderProfile[]): ProviderProfile[] {
  return [...profiles].sort((a, b) => (a.providerEsimId < b.providerEsimId ? -1 : 1));
}

function readBalance(provider: ProviderWorld['provider']) {
  return callProvider(provider, (signal) => provider.getBalance(signal));
}
