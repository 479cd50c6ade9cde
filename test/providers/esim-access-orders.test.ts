import { describe, expect, it } from 'vitest';
import { ProviderOutcomeUnknown, ProviderUnavailable } from '../../src/providers/index.js';
import { eventually } from '../harness/index.js';
import { type EsimAccessWorld, makeEsimAccessWorld, useEsimAccess } from './esim-access-world.js';
import { cancelable, findCancelStatuses, findParts } from './support-conformance.js';
import {
  find,
  newOrder,
  newTopup,
  place,
  provision,
  recoverOrder,
  findTopup,
  placeTopup,
} from './provider-world.js';

let world: EsimAccessWorld;
const bed = useEsimAccess((fresh) => (world = fresh));

describe('an order at eSIM Access', () => {
  it('is in progress while profiles are allocated, and then provisioned', async () => {
    const order = newOrder(world, 2);
    world.simulator.control({ faults: { allocatingLooks: 2 } });
    expect(await place(world.provider, order)).toMatchObject({ state: 'in_progress' });
    expect(await find(world.provider, order)).toMatchObject({ state: 'in_progress' });
    const secrets = {
      activationCode: expect.stringMatching(/^LPA:1\$/) as string,
      pin: '1234',
      puk: '12345678',
    };
    const profile = { ...secrets, installBy: expect.any(Date) as Date };
    expect(await find(world.provider, order)).toMatchObject({
      state: 'provisioned',
      profiles: [profile, profile],
    });
  });

  it('is in progress, not provisioned, for a new process that finds it during allocation', async () => {
    const order = newOrder(world, 2);
    world.simulator.control({ faults: { allocatingLooks: 2 } });
    await place(world.provider, order);
    const later = world.anotherProvider();
    expect(await find(later, order)).toMatchObject({ state: 'in_progress' });
    expect(await find(later, order)).toMatchObject({ state: 'provisioned' });
  });

  it('is bought once even if it is found only at the second lookup', async () => {
    const order = newOrder(world, 2);
    world.simulator.control({ faults: { hiddenLooks: 1, dropAfterCommit: 1 } });
    await expect(place(world.provider, order)).rejects.toBeInstanceOf(ProviderOutcomeUnknown);
    expect(await find(world.provider, order)).toBeNull();
    expect((await recoverOrder(world.provider, order)).state).toBe('provisioned');
    expect(await world.sim.purchasesOf(order.reference)).toBe(2);
  });

  describe('of a day pass', () => {
    const pass = { upstreamPackageId: 'JP_DAILY', unitCost: { micros: 7 * 700_000, currency: 'USD' } };

    it('is one purchase of all days, without a price that no source documents', async () => {
      const order = { ...newOrder(world, 2), ...pass, days: 7 };
      expect(await place(world.provider, order)).toMatchObject({ state: 'provisioned' });
      expect(await world.sim.purchasesOf(order.reference)).toBe(2);
      expect(world.simulator.state().days[order.reference]).toBe(7);
    });

    it('is bought once, with its days, when the response is lost', async () => {
      const order = { ...newOrder(world), ...pass, days: 7 };
      world.simulator.control({ faults: { hiddenLooks: 1, dropAfterCommit: 1 } });
      await expect(place(world.provider, order)).rejects.toBeInstanceOf(ProviderOutcomeUnknown);
      expect(await find(world.provider, order)).toBeNull();
      expect((await recoverOrder(world.provider, order)).state).toBe('provisioned');
      expect(await world.sim.purchasesOf(order.reference)).toBe(1);
      expect(world.simulator.state().days[order.reference]).toBe(7);
    });

    it('is not issued with fewer days than were bought', async () => {
      const order = { ...newOrder(world), ...pass, days: 7 };
      world.simulator.control({ faults: { tooFewDays: true } });
      expect(await place(world.provider, order)).toMatchObject({ state: 'in_progress' });
      await expect(find(world.provider, order)).rejects.toBeInstanceOf(ProviderOutcomeUnknown);
      // Support can end it, because it has nothing usable.
      expect(await findParts(world.provider, order)).toMatchObject({ profiles: [], unusable: 1 });
      expect(await find(world.provider, { ...order, days: 1 })).toMatchObject({ state: 'provisioned' });
    });

    it.each(['day', 'total'] as const)(
      'takes days in a top-up, and no total from a volume of unknown meaning (%s)',
      async (passVolume) => {
        world.simulator.control({ faults: { passVolume } });
        const { profiles } = await provision(world.provider, { ...newOrder(world), ...pass, days: 7 });
        const esim = { ...profiles[0]!, issuedAt: new Date() };
        const topup = { ...newTopup(world, esim), ...pass, upstreamPackageId: 'TOPUP_JP_DAILY', days: 3 };
        const state = await placeTopup(world.provider, topup);
        expect(state).toMatchObject({ state: 'completed', totalBytes: null });
        expect(world.simulator.state().days[topup.reference]).toBe(3);
        expect(await findTopup(world.provider, topup)).toMatchObject({
          state: 'completed',
          totalBytes: null,
        });
      },
    );

    it('states the price of one day, so that a higher one is refused', async () => {
      const order = { ...newOrder(world), ...pass, days: 1 };
      expect(await place(world.provider, order)).toMatchObject({
        state: 'rejected',
        failure: { code: 'price_changed' },
      });
    });
  });

  it('is found behind a page of 500 other eSIMs, hours after it was accepted', async () => {
    const order = newOrder(world, 2);
    const early = { ...order, acceptedAt: new Date(Date.now() - 6 * 3_600_000) };
    await place(world.provider, order);
    for (let i = 0; i < 26; i++) await place(world.provider, newOrder(world, 20));
    expect(await find(world.anotherProvider(), order)).toMatchObject({ state: 'provisioned' });
    expect(await find(world.anotherProvider(), early)).toMatchObject({ state: 'provisioned' });
  });

  it('is placed again, as the same request, when too many eSIMs precede it in the list', async () => {
    const order = newOrder(world, 2);
    world.simulator.control({ faults: { othersAhead: 30_000 } });
    await place(world.provider, order);
    const later = world.anotherProvider();
    expect(await find(later, order)).toBeNull();
    await expect(findParts(later, order)).rejects.toBeInstanceOf(ProviderOutcomeUnknown);
    expect(await place(later, order, 'again')).toMatchObject({ state: 'provisioned' });
    expect(await find(later, order)).toMatchObject({ state: 'provisioned', shortfall: null });
    expect(await world.sim.purchasesOf(order.reference)).toBe(2);
  });

  it.each([
    ['000105', 'provider_rejected'],
    ['000106', 'provider_rejected'],
    ['000107', 'provider_rejected'],
    ['200002', 'provider_rejected'],
    ['200005', 'price_changed'],
    ['200006', 'price_changed'],
    ['200007', 'provider_unavailable'],
    ['200008', 'provider_rejected'],
    ['200009', 'provider_rejected'],
    ['200011', 'package_unavailable'],
    ['310201', 'provider_rejected'],
    ['310211', 'provider_rejected'],
    ['310221', 'provider_rejected'],
    ['310231', 'provider_rejected'],
    ['310241', 'package_unavailable'],
    ['310243', 'package_unavailable'],
    ['310251', 'provider_rejected'],
    ['310403', 'provider_rejected'],
  ])('is rejected for %s as %s', async (code, failure) => {
    world.simulator.control({ faults: { refuse: { path: 'esim/order', code, count: 1, after: 0 } } });
    expect(await place(world.provider, newOrder(world))).toMatchObject({
      state: 'rejected',
      failure: { code: failure },
    });
  });

  it.each([
    ['900001', 1_000],
    ['000101', 60_000],
    ['000102', 60_000],
    ['000103', 60_000],
    ['000104', 60_000],
    ['101001', 60_000],
    ['101002', 60_000],
    ['101003', 60_000],
    ['101099', 60_000],
    ['401001', 60_000],
  ])('has certainly had no effect after %s, and is retried after %i ms', async (code, retryAfterMs) => {
    world.simulator.control({ faults: { refuse: { path: 'esim/order', code, count: 1, after: 0 } } });
    const refused = place(world.provider, newOrder(world));
    await expect(refused).rejects.toBeInstanceOf(ProviderUnavailable);
    await expect(refused).rejects.toMatchObject({ retryAfterMs });
  });

  it.each(['000001', '200010', '310272', '310402', '999999', '310999'])(
    'is not treated as rejected after %s',
    async (code) => {
      world.simulator.control({ faults: { refuse: { path: 'esim/order', code, count: 1, after: 0 } } });
      await expect(place(world.provider, newOrder(world))).rejects.toBeInstanceOf(ProviderOutcomeUnknown);
    },
  );

  it.each([
    ['200007', 'provider_unavailable'],
    ['310241', 'package_unavailable'],
    // Sent as 105.
    ['000105', 'provider_rejected'],
  ])('is rejected for %s even if the code is a number, as %s', async (code, failure) => {
    const refuse = { path: 'esim/order', code, count: 1, after: 0 };
    world.simulator.control({ faults: { numericCodes: true, refuse } });
    expect(await place(world.provider, newOrder(world))).toMatchObject({
      state: 'rejected',
      failure: { code: failure },
    });
  });

  it('is looked up by reference after a duplicate transactionId, and bought once', async () => {
    const order = newOrder(world);
    world.simulator.control({ faults: { hiddenLooks: 1, dropAfterCommit: 1 } });
    await expect(place(world.provider, order)).rejects.toBeInstanceOf(ProviderOutcomeUnknown);
    expect(await find(world.provider, order)).toBeNull();
    world.simulator.control({
      faults: { refuse: { path: 'esim/order', code: '310402', count: 1, after: 0 } },
    });
    await expect(place(world.provider, order, 'again')).rejects.toBeInstanceOf(ProviderOutcomeUnknown);
    expect(await find(world.provider, order)).toMatchObject({ state: 'provisioned' });
    expect(await world.sim.purchasesOf(order.reference)).toBe(1);
  });

  it('raises an alert when our access code may not place it, and is not rejected', async () => {
    world.simulator.control({
      faults: { refuse: { path: 'esim/order', code: '401001', count: 1, after: 0 } },
    });
    await expect(place(world.provider, newOrder(world))).rejects.toBeInstanceOf(ProviderUnavailable);
    expect(world.logLines).toContainEqual(
      expect.objectContaining({ event: 'provider.misconfigured', code: '401001' }),
    );
  });

  it('is rejected as price_changed when the price has risen since it was accepted', async () => {
    world.simulator.control({ price: { packageCode: 'PDE1D7', price: 6_100 } });
    const order = newOrder(world);
    expect(await place(world.provider, order)).toMatchObject({ failure: { code: 'price_changed' } });
    expect(await world.sim.purchasesOf(order.reference)).toBe(0);
  });

  it('is refused completely when the stock is too low', async () => {
    world.simulator.control({ faults: { stock: 2 } });
    const order = newOrder(world, 3);
    expect(await place(world.provider, order)).toMatchObject({ failure: { code: 'package_unavailable' } });
    expect(await world.sim.purchasesOf(order.reference)).toBe(0);
  });

  it('raises an alert when the account at the provider is empty', async () => {
    world.simulator.control({ balance: 0 });
    expect(await place(world.provider, newOrder(world))).toMatchObject({
      failure: { code: 'provider_unavailable' },
    });
    expect(world.logLines).toContainEqual(
      expect.objectContaining({ event: 'provider.funds_exhausted', provider: 'esim_access' }),
    );
  });

  it('stays provisioned when the lookup after the purchase meets a busy provider', async () => {
    const order = newOrder(world);
    world.simulator.control({
      faults: { refuse: { path: 'esim/query', code: '900001', count: 1, after: 0 } },
    });
    expect(await place(world.provider, order)).toMatchObject({ state: 'in_progress' });
    expect((await recoverOrder(world.provider, order)).state).toBe('provisioned');
    expect(await world.sim.purchasesOf(order.reference)).toBe(1);
  });

  it('keeps an ICCID that is reused or fails its check digit, with a warning for a failed check', async () => {
    world.simulator.control({ faults: { nextIccid: '8985220000000000007F' } });
    const first = await provision(world.provider, newOrder(world));
    world.simulator.control({ faults: { nextIccid: '8985220000000000007' } });
    const second = await provision(world.provider, newOrder(world));
    expect(first.profiles[0]!.iccid).toBe('8985220000000000007');
    expect(second.profiles[0]!.iccid).toBe('8985220000000000007');
    const before = world.logLines.filter((line) => line['event'] === 'provider.iccid_not_luhn').length;
    world.simulator.control({ faults: { nonLuhn: true } });
    await provision(world.provider, newOrder(world));
    const after = world.logLines.filter((line) => line['event'] === 'provider.iccid_not_luhn').length;
    expect(after).toBe(before + 1);
  });

  it('has an unknown outcome when the response misses the deadline, and is bought once', async () => {
    const slow = await makeEsimAccessWorld(bed.dataSource, { timeoutMs: 3_000 });
    try {
      slow.simulator.control({ faults: { slow: 1, slowMs: 8_000 } });
      const order = newOrder(slow);
      await expect(place(slow.provider, order)).rejects.toBeInstanceOf(ProviderOutcomeUnknown);
      expect((await recoverOrder(slow.provider, order)).state).toBe('provisioned');
      const arrivedTwice = () => slow.simulator.state().repeated.includes(order.reference);
      await eventually('the slow order arrived, too', arrivedTwice);
      expect(await slow.sim.purchasesOf(order.reference)).toBe(1);
    } finally {
      await slow.close();
    }
  });

  it.each(['text', 'not_an_object', 'wrong_types', 'huge', 'bad_utf8', 'cut', 'empty', 'http_500'] as const)(
    'has an unknown outcome when the response is %s',
    async (garbageKind) => {
      for (const call of [place, find]) {
        world.simulator.control({ faults: { garbage: 1, garbageKind } });
        await expect(call(world.provider, newOrder(world))).rejects.toBeInstanceOf(ProviderOutcomeUnknown);
      }
    },
  );

  it('is unavailable, not rejected, with a wrong signature, and raises an alert', async () => {
    const wrong = await makeEsimAccessWorld(bed.dataSource, { secretKey: ['an', 'other'].join('-') });
    try {
      const order = newOrder(wrong);
      await expect(place(wrong.provider, order)).rejects.toBeInstanceOf(ProviderUnavailable);
      expect(wrong.logLines).toContainEqual(
        expect.objectContaining({ event: 'provider.misconfigured', code: '101003' }),
      );
    } finally {
      await wrong.close();
    }
  });
});

describe('an order at eSIM Access that support inspects', () => {
  it('is shown as running during allocation, and without revoked or malformed eSIMs', async () => {
    const order = newOrder(world, 3);
    world.simulator.control({ faults: { allocatingLooks: 2 } });
    await place(world.provider, order);
    expect(await findParts(world.provider, order)).toMatchObject({ profiles: [], running: 3, unusable: 0 });
    const { profiles } = await provision(world.provider, order);
    const [revoked, broken, kept] = profiles.map(({ providerEsimId: esimTranNo }) => esimTranNo);
    world.simulator.control({ esim: { esimTranNo: revoked!, esimStatus: 'REVOKE' } });
    world.simulator.control({ esim: { esimTranNo: broken!, matchingId: '?' } });
    expect(await findParts(world.provider, order)).toMatchObject({
      profiles: [{ providerEsimId: kept }],
      running: 0,
      unusable: 1,
      failure: { code: 'provider_rejected' },
    });
    world.simulator.control({ esim: { esimTranNo: kept!, esimStatus: 'TELEPORTED' } });
    expect(await findParts(world.provider, order)).toMatchObject({ profiles: [], running: 1 });
  });

  it.each([
    ['IN_USE', 'ENABLED', 'in_use'],
    ['GOT_RESOURCE', 'DOWNLOAD', 'in_use'],
    ['USED_EXPIRED', 'DELETED', 'in_use'],
    ['UNUSED_EXPIRED', 'RELEASED', 'unused'],
    ['REVOKE', 'RELEASED', 'canceled'],
    ['TELEPORTED', 'RELEASED', 'unknown'],
  ])('shows an eSIM that is %s and %s as %s', async (esimStatus, smdpStatus, cancelStatus) => {
    const request = await cancelable(world.provider, newOrder(world));
    const { providerEsimId } = request.esims[0]!;
    world.simulator.control({ esim: { esimTranNo: providerEsimId, esimStatus, smdpStatus } });
    expect(await findCancelStatuses(world.provider, request)).toEqual([{ providerEsimId, cancelStatus }]);
  });

  it('is running as a whole while the provider reports that it still allocates profiles', async () => {
    const order = newOrder(world, 2);
    await provision(world.provider, order);
    world.simulator.control({
      faults: { refuse: { path: 'esim/query', code: '200010', count: 1, after: 0 } },
    });
    expect(await findParts(world.anotherProvider(), order)).toEqual({
      profiles: [],
      running: 2,
      unusable: 0,
      failure: null,
    });
  });

  it('is running during allocation, whatever its ICCID fields contain', async () => {
    const order = newOrder(world, 2);
    const [made, done] = (await provision(world.provider, order)).profiles;
    const { providerEsimId: esimTranNo } = made!;
    world.simulator.control({ esim: { esimTranNo, esimStatus: 'GETTING_RESOURCE', iccid: '0' } });
    expect(await findParts(world.provider, order)).toMatchObject({
      profiles: [{ providerEsimId: done!.providerEsimId }],
      running: 1,
      unusable: 0,
    });
  });
});
