import { describe, expect, it } from 'vitest';
import { UNSTATED_TERMS } from '../../src/catalog/index.js';
import { callProvider, type ProviderEsimRef, ProviderOutcomeUnknown } from '../../src/providers/index.js';
import { eventually, startReceiver } from '../harness/index.js';
import { type EsimAccessWorld, useEsimAccess } from './esim-access-world.js';
import { listPackages } from './listed-packages.js';
import { findTopup, newOrder, newTopup, placeTopup, provision, recoverTopup } from './provider-world.js';

let world: EsimAccessWorld;
useEsimAccess((fresh) => (world = fresh));

describe('an eSIM of eSIM Access', () => {
  async function newEsims(count: number): Promise<{ reference: string; esims: ProviderEsimRef[] }> {
    const order = newOrder(world, count);
    const { profiles } = await provision(world.provider, order);
    const esims = profiles.map(({ providerEsimId, iccid }) => ({
      providerEsimId,
      iccid,
      issuedAt: new Date(),
    }));
    return { reference: order.reference, esims };
  }

  function read(esims: readonly ProviderEsimRef[]) {
    return callProvider(world.provider, (signal) => world.provider.fetchUsage(esims, signal));
  }

  function cancel(reference: string, esims: readonly ProviderEsimRef[]) {
    const request = { reference, quantity: esims.length, esims };
    return callProvider(world.provider, (signal) => world.provider.cancelOrder(request, signal));
  }

  describe('cancellation', () => {
    it('cancels nothing when one eSIM of the order has been installed', async () => {
      const { reference, esims } = await newEsims(3);
      const esimTranNo = esims[1]!.providerEsimId;
      world.simulator.control({ esim: { esimTranNo, smdpStatus: 'INSTALLATION' } });
      expect(await cancel(reference, esims)).toMatchObject({ state: 'refused' });
      expect(await world.sim.canceledOf(reference)).toBe(0);
    });

    it('names the canceled eSIMs when the provider refuses midway', async () => {
      const { reference, esims } = await newEsims(3);
      world.simulator.control({
        faults: { refuse: { path: 'esim/cancel', code: '200002', count: 1, after: 1 } },
      });
      expect(await cancel(reference, esims)).toMatchObject({
        state: 'partly_canceled',
        canceledEsimIds: [esims[0]!.providerEsimId],
      });
      expect(await world.sim.canceledOf(reference)).toBe(1);
      expect(await cancel(reference, esims)).toEqual({ state: 'canceled' });
      expect(await world.sim.canceledOf(reference)).toBe(3);
    });

    it('continues where a call without a response has stopped it', async () => {
      const { reference, esims } = await newEsims(3);
      world.simulator.control({
        faults: { refuse: { path: 'esim/cancel', code: '900001', count: 1, after: 1 } },
      });
      await expect(cancel(reference, esims)).rejects.toBeInstanceOf(ProviderOutcomeUnknown);
      expect(await cancel(reference, esims)).toEqual({ state: 'canceled' });
      expect(await world.sim.canceledOf(reference)).toBe(3);
    });
  });

  describe('a top-up', () => {
    it('is not reported as absent while the eSIM has more volume than its listed packages explain', async () => {
      const { esims } = await newEsims(1);
      const topup = newTopup(world, esims[0]!);
      const esimTranNo = esims[0]!.providerEsimId;
      world.simulator.control({ esim: { esimTranNo, totalVolume: 3_000_000_000 } });
      await expect(findTopup(world.provider, topup)).rejects.toBeInstanceOf(ProviderOutcomeUnknown);
      await expect(placeTopup(world.provider, topup, 'again')).rejects.toBeInstanceOf(ProviderOutcomeUnknown);
      expect(await world.sim.topupsOf(topup.reference)).toBe(0);
    });

    it('is not completed by an incomplete success response, and is then applied once', async () => {
      const { esims } = await newEsims(1);
      const topup = newTopup(world, esims[0]!);
      world.simulator.control({ faults: { garbage: 1, garbageKind: 'wrong_types' } });
      await expect(placeTopup(world.provider, topup)).rejects.toThrow(ProviderOutcomeUnknown);
      expect((await recoverTopup(world.provider, topup)).state).toBe('completed');
      expect(await world.sim.topupsOf(topup.reference)).toBe(1);
    });

    it("adds to the eSIM's data, and returns its new total and expiry", async () => {
      const { esims } = await newEsims(1);
      const state = await placeTopup(world.provider, newTopup(world, esims[0]!));
      expect(state).toMatchObject({ state: 'completed', totalBytes: 2_147_483_648 });
      const [reading] = await read(esims);
      expect(reading).toMatchObject({
        totalBytes: 2_147_483_648,
        expiresAt: (state as { expiresAt: Date }).expiresAt,
      });
    });

    it.each([
      ['USED_EXPIRED', 'esim_expired'],
      ['CANCEL', 'provider_rejected'],
    ])('is rejected for an eSIM in %s as %s', async (esimStatus, code) => {
      const { esims } = await newEsims(1);
      world.simulator.control({ esim: { esimTranNo: esims[0]!.providerEsimId, esimStatus } });
      expect(await placeTopup(world.provider, newTopup(world, esims[0]!))).toMatchObject({
        state: 'rejected',
        failure: { code },
      });
    });

    it('is rejected as topup_not_supported for an eSIM without top-ups', async () => {
      const { esims } = await newEsims(1);
      world.simulator.control({ esim: { esimTranNo: esims[0]!.providerEsimId, supportTopUpType: 1 } });
      expect(await placeTopup(world.provider, newTopup(world, esims[0]!))).toMatchObject({
        failure: { code: 'topup_not_supported' },
      });
    });
  });

  describe('a reading', () => {
    it.each([
      ['IN_USE', 'ENABLED', 'active', 'enabled'],
      ['USED_UP', 'DISABLED', 'depleted', 'disabled'],
      ['UNUSED_EXPIRED', 'DELETED', 'expired', 'deleted'],
      ['SUSPENDED', 'INSTALLATION', 'suspended', 'installed'],
      ['REVOKE', 'DOWNLOAD', 'canceled', 'downloaded'],
      ['REVOKED', '', 'canceled', 'unknown'],
    ])('maps %s and %s to %s and %s', async (esimStatus, smdpStatus, status, profileStatus) => {
      const { esims } = await newEsims(1);
      world.simulator.control({ esim: { esimTranNo: esims[0]!.providerEsimId, esimStatus, smdpStatus } });
      expect(await read(esims)).toMatchObject([{ status, profileStatus }]);
    });

    it('has the time when the provider read its counters, even if it is hours ago', async () => {
      const { esims } = await newEsims(1);
      const esimTranNo = esims[0]!.providerEsimId;
      const usageReadAtMs = Math.floor(Date.now() / 1_000) * 1_000 - 5 * 3_600_000;
      world.simulator.control({ esim: { esimTranNo, esimStatus: 'IN_USE', orderUsage: 7, usageReadAtMs } });
      expect(await read(esims)).toMatchObject([{ usedBytes: 7, asOf: new Date(usageReadAtMs) }]);
    });

    it('costs one call for a hundred eSIMs that were issued together', async () => {
      const esims = (await Promise.all(Array.from({ length: 5 }, () => newEsims(20)))).flatMap(
        (o) => o.esims,
      );
      const before = world.simulator.state().calls['esim/query']!;
      expect(await read(esims)).toHaveLength(100);
      expect(world.simulator.state().calls['esim/query']! - before).toBe(1);
    });

    it('needs a separate call for an eSIM outside the time window of its issue', async () => {
      const { esims } = await newEsims(4);
      const longAgo = esims.map((esim) => ({ ...esim, issuedAt: new Date(Date.now() - 30 * 86_400_000) }));
      expect(await read(longAgo)).toHaveLength(4);
    });

    it('omits an eSIM without a counter so far, and includes the others', async () => {
      const { esims } = await newEsims(3);
      const usageReadAtMs = Math.floor(Date.now() / 1_000) * 1_000 - 5 * 3_600_000;
      const [unused, ...used] = esims.map(({ providerEsimId }) => providerEsimId);
      world.simulator.control({ esim: { esimTranNo: unused!, usageReadAtMs: null } });
      for (const esimTranNo of used)
        world.simulator.control({ esim: { esimTranNo, orderUsage: 7, usageReadAtMs } });
      const readings = new Map((await read(esims)).map((each) => [each.providerEsimId, each]));
      expect(readings.get(unused!)).toMatchObject({ status: 'issued', usedBytes: 0 });
      for (const no of used)
        expect(readings.get(no)).toMatchObject({ usedBytes: 7, asOf: new Date(usageReadAtMs) });
    });

    it.each([
      ['negative usage', { orderUsage: -3_000 }, { usedBytes: 0 }],
      ['counters as text', { orderUsage: '700', totalVolume: '1000' }, { usedBytes: 700, totalBytes: 1_000 }],
      [
        'more usage than the total',
        { orderUsage: 1_100, totalVolume: 1_000 },
        { usedBytes: 1_100, totalBytes: 1_000 },
      ],
      ['a fraction of a byte', { orderUsage: 700.5 }, { usedBytes: 700 }],
      ['text that is not a number', { orderUsage: 'NaN' }, { usedBytes: null }],
      ['no counter', { orderUsage: null }, { usedBytes: null }],
      ['no total', { orderUsage: 7, totalVolume: 'NaN' }, { usedBytes: 7, totalBytes: null }],
      ['a negative total', { orderUsage: 7, totalVolume: -1 }, { usedBytes: 7, totalBytes: null }],
      [
        'overflowing counters',
        { orderUsage: 1e300, totalVolume: 1e300 },
        { usedBytes: null, totalBytes: null },
      ],
      ['a pass, whose volume may be that of one day', { dataType: 2 }, { goesOn: true, totalBytes: null }],
      ['codes as text', { dataType: '4', supportTopUpType: '1' }, { totalBytes: null }],
    ])('is returned with %s', async (_what, figures, wanted) => {
      const { esims } = await newEsims(1);
      const [esim] = esims;
      const esimTranNo = esim!.providerEsimId;
      // `esim/usage/query` has no counter for it.
      const odd = { esimTranNo, esimStatus: 'IN_USE', usageReadAtMs: null, ...figures };
      world.simulator.control({ esim: odd as unknown as { esimTranNo: string } });
      expect(await read(esims)).toMatchObject([{ status: 'active', ...wanted }]);
    });

    it('includes the others when one eSIM is malformed, whether read together or one by one', async () => {
      const { esims } = await newEsims(4);
      world.simulator.control({ esim: { esimTranNo: esims[0]!.providerEsimId, iccid: '0' } });
      const longAgo = esims.map((esim) => ({ ...esim, issuedAt: new Date(Date.now() - 30 * 86_400_000) }));
      for (const batch of [esims, longAgo]) {
        const found = (await read(batch)).map((reading) => reading.providerEsimId);
        expect(found.sort()).toEqual(esims.slice(1).map((esim) => esim.providerEsimId));
      }
    });

    it.each(['000001', '310403'])(
      'includes the others when the provider fails for one (%s)',
      async (code) => {
        const { esims } = await newEsims(3);
        const longAgo = esims.map((esim) => ({ ...esim, issuedAt: new Date(Date.now() - 30 * 86_400_000) }));
        // The first lookup queries the whole time window and finds none of them.
        world.simulator.control({ faults: { refuse: { path: 'esim/query', code, count: 1, after: 2 } } });
        expect(await read(longAgo)).toHaveLength(2);
      },
    );

    it("falls back to one call per eSIM when the provider's list fails", async () => {
      const { esims } = await newEsims(3);
      world.simulator.control({
        faults: { refuse: { path: 'esim/query', code: '000001', count: 1, after: 0 } },
      });
      expect(await read(esims)).toHaveLength(3);
    });

    it('throws instead of returning nothing when every call fails', async () => {
      const { esims } = await newEsims(2);
      world.simulator.control({
        faults: { refuse: { path: 'esim/query', code: '000001', count: 9, after: 0 } },
      });
      await expect(read(esims)).rejects.toBeInstanceOf(ProviderOutcomeUnknown);
    });

    it('omits an eSIM with an unknown status, and includes the others', async () => {
      const { esims } = await newEsims(3);
      world.simulator.control({ esim: { esimTranNo: esims[0]!.providerEsimId, esimStatus: 'TELEPORTED' } });
      expect(await read(esims)).toHaveLength(2);
    });
  });

  describe('a package', () => {
    it('is converted to our units, to the byte and to the millionth', async () => {
      const packages = await listPackages(world.provider);
      expect(packages.find((p) => p.upstreamId === 'PDE3D30')).toEqual({
        upstreamId: 'PDE3D30',
        kind: 'base',
        title: 'Germany 3GB 30Days',
        coverage: ['DE'],
        regionName: null,
        dataBytes: 3_221_225_472,
        unlimited: false,
        voiceMinutes: null,
        smsCount: null,
        validityDays: 30,
        activationPolicy: 'on_install',
        topupSupported: true,
        networks: [{ country: 'DE', operator: 'Mobile DE', generations: ['5G'] }],
        cost: { micros: 1_560_000, currency: 'USD' },
        suggestedRetail: { micros: 3_120_000, currency: 'USD' },
        available: true,
        speedPolicy: null,
        notes: null,
        terms: {
          ...UNSTATED_TERMS,
          dataUnit: 'binary',
          exitCountries: ['HK'],
          maxGeneration: '5G',
          installWithinDays: 180,
          topup: { kinds: ['data'], behavior: 'adds', maxCount: 10 },
        },
      });
      const byId = (id: string) => packages.find((p) => p.upstreamId === id);
      expect(byId('DE_UNL_1')).toMatchObject({ dataBytes: null, unlimited: true, validityDays: 1 });
      expect(byId('US_MB_1')).toMatchObject({ validityDays: 30, activationPolicy: 'on_first_use' });
      expect(byId('TR_NO_TOPUP')).toMatchObject({ topupSupported: false });
      expect(byId('PEU301D7')).toMatchObject({ regionName: 'EU-30' });
      expect(byId('PEU301D7')!.coverage).toHaveLength(27);
    });
  });

  describe('a callback', () => {
    it('identifies the changed object, however late, duplicated or reordered it arrives', async () => {
      const receiver = await startReceiver();
      try {
        world.simulator.control({ callbacks: { url: receiver.url, copies: 2, disorder: true, delayMs: 20 } });
        const { reference, esims } = await newEsims(1);
        const esimTranNo = esims[0]!.providerEsimId;
        world.simulator.control({ esim: { esimTranNo, smdpStatus: 'ENABLED', esimStatus: 'IN_USE' } });
        await eventually('all callbacks have come', () => receiver.received.length >= 6);
        const hints = receiver.received.flatMap((hook) => world.provider.hintsOf(JSON.parse(hook.body)));
        expect(hints).toContainEqual({ about: 'order', reference });
        expect(hints.filter((hint) => hint.about === 'esim')).toEqual(
          Array.from({ length: 4 }, () => ({ about: 'esim', providerEsimId: esimTranNo })),
        );
      } finally {
        await receiver.close();
      }
    });

    it('is recognized as a health check, and unusable callbacks yield nothing', () => {
      const { provider } = world;
      const content = { orderNo: '1234567890', orderStatus: 'Test' };
      expect(provider.hintsOf({ notifyType: 'CHECK_HEALTH', content })).toEqual([{ about: 'health_check' }]);
      expect(provider.hintsOf({ notifyType: 'ORDER_STATUS', content })).toEqual([]);
      expect(provider.hintsOf({ notifyType: 'ESIM_STATUS', content: { esimTranNo: "1' OR 1=1" } })).toEqual(
        [],
      );
    });
  });
});
