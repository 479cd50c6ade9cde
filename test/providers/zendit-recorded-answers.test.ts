import { describe, expect, it } from 'vitest';
import type { ControlBody } from '../../simulators/zendit/simulator.js';
import { ProviderUnavailable, type ProviderPurchase } from '../../src/providers/index.js';
import { findParts, findCancelStatuses } from './support-conformance.js';
import { newOrder, newReference, signal, ZenditSuite } from './zendit-suite.js';
import { BASE, TOPUP } from './zendit-world.js';

/** Responses that the official SDKs allow and the documentation does not mention. */
describe('Zendit as described by its official SDKs', () => {
  const suite = ZenditSuite.use();

  async function bought(quantity = 1) {
    const order = newOrder(quantity);
    const profiles = await suite.provision(order);
    const esims = profiles.map((profile) => ({ ...profile, issuedAt: new Date() }));
    return { order, cancellation: { reference: order.reference, quantity, esims } };
  }

  async function newTopup() {
    const { cancellation } = await bought();
    const reference = newReference();
    return {
      reference,
      esim: cancellation.esims[0]!,
      packageId: 'pkg_any',
      acceptedAt: new Date(),
      ...TOPUP,
    };
  }

  function list(order: ReturnType<typeof newOrder>): Promise<readonly ProviderPurchase[]> {
    return suite.provider.listPurchases(order, new Date(), signal);
  }

  function callsOf(route: string): number {
    return suite.simulator.state().calls[route] ?? 0;
  }

  describe('a top-up', () => {
    it.each(['empty', 'absent'] as const)(
      'is completed when its confirmation is %s, because the eSIM has its profile',
      async (topupConfirmation) => {
        suite.simulator.control({ topupConfirmation });
        const topup = await newTopup();
        await suite.provider.placeTopup(topup, 'first', signal);
        expect(await suite.provider.findTopup(topup, signal)).toMatchObject({ state: 'completed' });
        expect(await suite.provider.placeTopup(topup, 'again', signal)).toMatchObject({ state: 'completed' });
      },
    );
  });

  describe('a refund', () => {
    it.each<ControlBody>([
      { noRefundStatus: 400 },
      { noRefundStatus: 404 },
      { noRefundStatus: 400, refundInPurchase: false },
      { noRefundStatus: 404, refundInPurchase: false },
    ])('is posted once when none exists, and followed to its end: %j', async (switches) => {
      const { cancellation } = await bought(2);
      suite.simulator.control({ ...switches, looks: 3 });
      expect(await suite.provider.cancelOrder(cancellation, signal)).toEqual({ state: 'canceled' });
      expect(await suite.provider.cancelOrder(cancellation, signal)).toEqual({ state: 'canceled' });
    });

    it('is not posted while it is unknown whether an earlier one exists', async () => {
      const { cancellation } = await bought();
      suite.simulator.control({ noRefundStatus: 500 });
      await expect(suite.provider.cancelOrder(cancellation, signal)).rejects.toBeInstanceOf(
        ProviderUnavailable,
      );
      const [purchase] = Object.values(suite.simulator.state().purchases);
      expect(purchase).toMatchObject({ refund: null });
    });

    it('is read from the purchase by reconciliation and by support, with one call per eSIM', async () => {
      const { order, cancellation } = await bought(2);
      const [first] = cancellation.esims;
      await suite.provider.cancelOrder({ ...cancellation, esims: [first!] }, signal);
      suite.simulator.control({ noRefundStatus: 500 });
      const before = callsOf('GET /esim/purchases');
      expect(await list(order)).toEqual([
        { providerEsimId: `${order.reference}-1`, state: 'taken_back' },
        { providerEsimId: `${order.reference}-2`, state: 'sold' },
      ]);
      expect(await findParts(suite.provider, order)).toMatchObject({
        profiles: [{ providerEsimId: `${order.reference}-2` }],
        failure: { code: 'provider_rejected' },
      });
      expect(callsOf('GET /esim/purchases') - before).toBe(4);
    });

    it('shows support the state of the eSIMs', async () => {
      const { cancellation } = await bought(2);
      const [first] = cancellation.esims;
      await suite.provider.cancelOrder({ ...cancellation, esims: [first!] }, signal);
      suite.simulator.control({ noRefundStatus: 400 });
      const cancelStatuses = await findCancelStatuses(suite.provider, cancellation);
      expect(cancelStatuses.map(({ cancelStatus }) => cancelStatus)).toEqual(['canceled', 'unused']);
    });

    it('ends the order as rejected when it covers the whole order', async () => {
      const { order, cancellation } = await bought();
      await suite.provider.cancelOrder(cancellation, signal);
      expect(await suite.provider.findOrder(order, signal)).toMatchObject({
        state: 'rejected',
        failure: { code: 'provider_rejected' },
      });
    });
  });

  describe('a fee', () => {
    it.each([true, false])(
      'counts when a purchase is checked for a price rise (next to the cost: %s)',
      async (feeBesideCost) => {
        suite.simulator.control({ purchaseFee: 30, feeBesideCost });
        const order = newOrder();
        await suite.provider.placeOrder(order, 'first', signal);
        expect(await suite.provider.findOrder(order, signal)).toMatchObject({
          state: 'provisioned',
          actualCost: { micros: 1_500_000, currency: 'USD' },
        });
      },
    );
  });

  describe('a refusal', () => {
    it.each([400, 404] as const)('ends the order when %i says that the offer is not sold', async (status) => {
      suite.simulator.control({
        unknownOfferStatus: status,
        offers: { [BASE.upstreamPackageId]: { enabled: false } },
      });
      for (const placement of ['first', 'again'] as const)
        expect(await suite.provider.placeOrder(newOrder(), placement, signal)).toMatchObject({
          state: 'rejected',
          failure: { code: 'package_unavailable' },
        });
      expect(suite.simulator.state().purchases).toEqual({});
    });

    it('is recognized when its code is a number, and a failed purchase then counts as failed', async () => {
      suite.simulator.control({ numericCodes: true, outcomes: ['OUT_OF_STOCK'] });
      const failed = newOrder();
      expect((await suite.provider.placeOrder(failed, 'again', signal)).state).toBe('in_progress');
      expect(await suite.provider.findOrder(failed, signal)).toMatchObject({ state: 'rejected' });
      suite.simulator.control({ offers: { [BASE.upstreamPackageId]: { enabled: false } } });
      expect(await suite.provider.placeOrder(newOrder(), 'first', signal)).toMatchObject({
        state: 'rejected',
        failure: { code: 'package_unavailable' },
      });
    });
  });
});
