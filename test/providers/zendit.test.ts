import { RepeatLimitReached } from '../../src/providers/http/index.js';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { ProviderOutcomeUnknown } from '../../src/providers/index.js';
import { describeConformance } from './conformance.js';
import { newOrder, newReference, signal, ZenditSuite } from './zendit-suite.js';
import { cancelable, findParts, findCancelStatuses } from './support-conformance.js';
import { makeZenditWorld, TOPUP, ZenditBench } from './zendit-world.js';

describe('the Zendit adapter', () => {
  let bench: ZenditBench;
  beforeAll(async () => {
    bench = await ZenditBench.open();
  });
  afterAll(() => bench.close());

  describeConformance('Zendit', () => makeZenditWorld(bench));
});

describe('Zendit', () => {
  const suite = ZenditSuite.use();

  describe('profiles', () => {
    it.each(['bare', 'lpa', 'short'] as const)(
      'reads an activation code that is %s',
      async (activationCode) => {
        suite.simulator.control({ activationCode, smdpScheme: true });
        const order = newOrder();
        const [profile] = await suite.provision(order);
        expect(profile).toMatchObject({
          providerEsimId: `${order.reference}-1`,
          smdpAddress: 'smdp.zendit-simulator.example.com',
          matchingId: expect.stringMatching(/^[0-9A-F]{20}$/),
        });
      },
    );

    it('accepts an ICCID that was used before, and one with a wrong check digit', async () => {
      suite.simulator.control({ iccids: 'reused' });
      const [first, second] = await suite.provision(newOrder(2));
      expect(first?.iccid).toBe(second?.iccid);
      expect(first?.providerEsimId).not.toBe(second?.providerEsimId);
      suite.simulator.control({ iccids: 'nonLuhn' });
      expect((await suite.provision(newOrder()))[0]?.iccid).toMatch(/^\d{19}$/);
    });

    it('writes neither the key nor an activation code into the log', async () => {
      suite.simulator.control({ activationCode: 'lpa' });
      const [profile] = await suite.provision(newOrder());
      const log = JSON.stringify(suite.bench.log.lines);
      expect(log).toContain('provider.call');
      expect(log).not.toContain(profile!.matchingId);
      expect(log).not.toContain(suite.simulator.apiKey);
    });
  });

  describe('a cancellation', () => {
    async function cancelable(quantity: number) {
      const order = newOrder(quantity);
      const profiles = await suite.provision(order);
      const esims = profiles.map((profile) => ({ ...profile, issuedAt: new Date() }));
      return { reference: order.reference, quantity, esims };
    }

    it('follows a refund to its end', async () => {
      const request = await cancelable(2);
      suite.simulator.control({ looks: 2 });
      expect(await suite.provider.cancelOrder(request, signal)).toEqual({ state: 'canceled' });
      expect(Object.values(suite.simulator.state().purchases).map(({ refund }) => refund)).toEqual([
        'DONE',
        'DONE',
      ]);
    });

    it('does not repeat a refund whose response was lost', async () => {
      const request = await cancelable(1);
      suite.simulator.control({ dropAfterCommit: 1 });
      await expect(suite.provider.cancelOrder(request, signal)).rejects.toBeInstanceOf(
        ProviderOutcomeUnknown,
      );
      expect(await suite.provider.cancelOrder(request, signal)).toEqual({ state: 'canceled' });
    });

    it('names the canceled eSIMs when the others were not canceled', async () => {
      const request = await cancelable(2);
      const [first] = request.esims;
      await suite.provider.cancelOrder({ ...request, esims: [first!] }, signal);
      suite.simulator.control({ refundOutcome: 'NOT_REFUNDABLE' });
      expect(await suite.provider.cancelOrder(request, signal)).toMatchObject({
        state: 'partly_canceled',
        canceledEsimIds: [first!.providerEsimId],
        failure: { code: 'provider_rejected' },
      });
    });

    it('is refused when no refund succeeds', async () => {
      const request = await cancelable(2);
      suite.simulator.control({ refundOutcome: 'NOT_REFUNDABLE' });
      expect((await suite.provider.cancelOrder(request, signal)).state).toBe('refused');
    });

    it('has an unknown outcome while a refund runs', async () => {
      const request = await cancelable(1);
      suite.simulator.control({ looks: 100 });
      await expect(suite.provider.cancelOrder(request, signal)).rejects.toBeInstanceOf(
        ProviderOutcomeUnknown,
      );
    });
  });

  describe('the data for support', () => {
    it('includes the parts of an order whose last purchase was lost and then refused without a reason', async () => {
      suite.simulator.control({ dropBeforeCommit: 1, sellsOnly: 2 });
      const order = newOrder(3);
      for (const placement of ['first', 'again'] as const)
        await expect(suite.provider.placeOrder(order, placement, signal)).rejects.toBeInstanceOf(
          ProviderOutcomeUnknown,
        );
      // A refused repetition does not reveal the result of the first call, so nothing more is sent.
      await expect(suite.provider.placeOrder(order, 'again', signal)).rejects.toBeInstanceOf(
        RepeatLimitReached,
      );
      expect(await suite.provider.findOrder(order, signal)).toBeNull();
      const parts = await findParts(suite.provider, order);
      expect(parts).toMatchObject({ profiles: { length: 2 }, running: 0, unusable: 0, failure: null });
    });

    it('distinguishes running, failed, refunded and unreadable parts from usable ones', async () => {
      const order = newOrder(2);
      const [first] = await suite.provision(order);
      const esim = { ...first!, issuedAt: new Date() };
      await suite.provider.cancelOrder({ reference: order.reference, quantity: 2, esims: [esim] }, signal);
      expect(await findParts(suite.provider, order)).toMatchObject({
        profiles: [{ providerEsimId: `${order.reference}-2` }],
        failure: { code: 'provider_rejected' },
      });
      suite.simulator.control({ activationCode: 'none', outcomes: [null, 'OUT_OF_STOCK', null], looks: 2 });
      const other = newOrder(2);
      await suite.provider.placeOrder(other, 'first', signal);
      expect(await findParts(suite.provider, other)).toMatchObject({ profiles: [], running: 2, unusable: 0 });
      expect(await findParts(suite.provider, other)).toMatchObject({
        profiles: [],
        running: 0,
        unusable: 1,
        failure: { code: 'package_unavailable' },
      });
    });

    it('includes running refunds and eSIMs in use, even if the ICCID had an earlier owner', async () => {
      const request = await cancelable(suite.provider, newOrder(3));
      const [running, used, reused] = request.esims;
      const [before, after] = [-60_000, 60_000].map((ms) => new Date(Date.now() + ms).toISOString());
      suite.simulator.control({
        plans: {
          [used!.iccid]: { firstInstalledAt: after! },
          [reused!.iccid]: { firstInstalledAt: before! },
        },
        looks: 100,
      });
      const { baseUrl, apiKey } = suite.simulator;
      const headers = { authorization: `Bearer ${apiKey}` };
      const refund = `${baseUrl}/esim/purchases/${running!.providerEsimId}/refund`;
      expect((await fetch(refund, { method: 'POST', headers })).status).toBe(200);
      const cancelStatuses = await findCancelStatuses(suite.provider, request);
      expect(cancelStatuses.map(({ cancelStatus }) => cancelStatus)).toEqual([
        'being_canceled',
        'in_use',
        'unused',
      ]);
    });
  });

  describe('top-ups', () => {
    async function newTopup() {
      const [profile] = await suite.provision(newOrder());
      const esim = { ...profile!, issuedAt: new Date() };
      const reference = newReference();
      return { reference, esim, packageId: 'pkg_any', acceptedAt: new Date(), ...TOPUP };
    }

    it('puts the plan on the eSIM under the reference itself', async () => {
      const topup = await newTopup();
      await suite.provider.placeTopup(topup, 'first', signal);
      expect((await suite.provider.findTopup(topup, signal))?.state).toBe('completed');
      expect(suite.simulator.state().purchases[topup.reference]).toMatchObject({
        topupOf: topup.esim.iccid,
        offerId: TOPUP.upstreamPackageId,
      });
    });

    it('rejects a top-up that failed late', async () => {
      const topup = await newTopup();
      suite.simulator.control({ outcomes: ['OUT_OF_STOCK'] });
      await suite.provider.placeTopup(topup, 'first', signal);
      expect(await suite.provider.findTopup(topup, signal)).toMatchObject({
        state: 'rejected',
        failure: { code: 'package_unavailable' },
      });
    });

    it('rejects a top-up of an eSIM that Zendit does not know', async () => {
      const topup = await newTopup();
      const stranger = { ...topup, esim: { ...topup.esim, iccid: '8944500000000000000' } };
      expect((await suite.provider.placeTopup(stranger, 'again', signal)).state).toBe('rejected');
    });
  });
});
