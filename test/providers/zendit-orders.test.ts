import { describe, expect, it } from 'vitest';
import { ProviderOutcomeUnknown, ProviderUnavailable } from '../../src/providers/index.js';
import { recoverOrder } from './provider-world.js';
import { newOrder, signal, ZenditSuite } from './zendit-suite.js';
import { BASE } from './zendit-world.js';

describe('Zendit', () => {
  const suite = ZenditSuite.use();

  describe('orders', () => {
    it('follows a purchase through every status, and posts it once', async () => {
      suite.simulator.control({ looks: 5 });
      const order = newOrder();
      expect((await suite.provider.placeOrder(order, 'first', signal)).state).toBe('in_progress');
      for (let look = 1; look <= 4; look++)
        expect((await suite.provider.findOrder(order, signal))?.state).toBe('in_progress');
      expect((await suite.provider.findOrder(order, signal))?.state).toBe('provisioned');
      expect(suite.simulator.state().calls).toEqual({ 'POST /esim/purchases': 1, 'GET /esim/purchases': 5 });
    });

    it.each([
      ['OUT_OF_STOCK', 'package_unavailable'],
      ['OFFER_DISABLED', 'package_unavailable'],
      ['PRICE_CHANGED', 'price_changed'],
      ['SYSTEM_UNAVAILABLE', 'provider_unavailable'],
      ['SOMETHING_NEW', 'provider_rejected'],
    ])('rejects an order whose purchase failed late with %s as %s', async (errorCode, code) => {
      suite.simulator.control({ outcomes: [errorCode], looks: 2 });
      const order = newOrder();
      await suite.provider.placeOrder(order, 'first', signal);
      expect((await suite.provider.findOrder(order, signal))?.state).toBe('in_progress');
      expect(await suite.provider.findOrder(order, signal)).toMatchObject({
        state: 'rejected',
        failure: { code },
      });
    });

    it('reports our empty wallet as provider_unavailable, and logs it', async () => {
      suite.simulator.control({ balance: 200 });
      const order = newOrder(2);
      await suite.provider.placeOrder(order, 'first', signal);
      expect(await suite.provider.findOrder(order, signal)).toMatchObject({
        state: 'provisioned',
        profiles: [expect.anything()],
        shortfall: { code: 'provider_unavailable' },
      });
      expect(suite.bench.log.events()).toContain('provider.funds_exhausted');
    });

    it('provisions the others when one purchase of the batch is out of stock', async () => {
      suite.simulator.control({ outcomes: [null, 'OUT_OF_STOCK', null] });
      const order = newOrder(3);
      await suite.provider.placeOrder(order, 'first', signal);
      expect(await suite.provider.findOrder(order, signal)).toMatchObject({
        state: 'provisioned',
        profiles: { length: 2 },
        shortfall: { code: 'package_unavailable' },
      });
      suite.expectOnePurchaseEach(order);
    });

    it('posts only the missing purchases when most responses of an order are lost', async () => {
      suite.simulator.control({ dropAfterCommit: 2, dropBeforeCommit: 1 });
      const order = newOrder(12);
      await expect(suite.provider.placeOrder(order, 'first', signal)).rejects.toBeInstanceOf(
        ProviderOutcomeUnknown,
      );
      const before = Object.keys(suite.simulator.state().purchases).length;
      expect(before).toBeGreaterThan(0);
      expect(before).toBeLessThan(12);
      expect(await suite.provider.findOrder(order, signal)).toBeNull();
      expect((await suite.provider.placeOrder(order, 'again', signal)).state).toBe('in_progress');
      suite.expectOnePurchaseEach(order);
      expect(await suite.provider.findOrder(order, signal)).toMatchObject({
        profiles: { length: 12 },
        shortfall: null,
      });
    });

    it('reports an order as unknown while reads lag, and finds it afterwards', async () => {
      suite.simulator.control({ readLagLooks: 2 });
      const order = newOrder(2);
      await suite.provider.placeOrder(order, 'first', signal);
      expect(await suite.provider.findOrder(order, signal)).toBeNull();
      expect(await suite.provider.findOrder(order, signal)).toBeNull();
      expect((await suite.provider.placeOrder(order, 'again', signal)).state).toBe('provisioned');
      suite.expectOnePurchaseEach(order);
    });

    it.each([true, false])(
      'does not end a known purchase because of a refusal (vague: %s)',
      async (vagueDuplicates) => {
        const order = newOrder();
        suite.simulator.control({ readLagLooks: 9, vagueDuplicates });
        await suite.provider.placeOrder(order, 'first', signal);
        suite.duplicatesMeant = 1;
        await expect(suite.provider.placeOrder(order, 'again', signal)).rejects.toBeInstanceOf(
          ProviderOutcomeUnknown,
        );
        suite.expectOnePurchaseEach(order);
      },
    );

    it('follows a purchase that exists although its repetition was refused', async () => {
      const order = newOrder();
      suite.simulator.control({ readLagLooks: 1, vagueDuplicates: true });
      await suite.provider.placeOrder(order, 'first', signal);
      suite.duplicatesMeant = 1;
      expect((await suite.provider.placeOrder(order, 'again', signal)).state).toBe('provisioned');
      suite.expectOnePurchaseEach(order);
    });

    it('buys once when a purchase was made despite a 503', async () => {
      suite.simulator.control({ unavailableAfterCommit: 1 });
      const order = newOrder();
      await expect(suite.provider.placeOrder(order, 'first', signal)).rejects.toBeInstanceOf(
        ProviderOutcomeUnknown,
      );
      expect((await suite.provider.placeOrder(order, 'again', signal)).state).toBe('provisioned');
      suite.expectOnePurchaseEach(order);
    });

    it('does not treat a 503 as "not known"', async () => {
      const order = newOrder();
      await suite.provider.placeOrder(order, 'first', signal);
      suite.simulator.control({ unavailable: 2 });
      await expect(suite.provider.findOrder(order, signal)).rejects.toBeInstanceOf(ProviderUnavailable);
      await expect(suite.provider.placeOrder(order, 'again', signal)).rejects.toBeInstanceOf(
        ProviderUnavailable,
      );
      expect((await suite.provider.findOrder(order, signal))?.state).toBe('provisioned');
    });

    it('throws ProviderUnavailable only when no part of the order was sent', async () => {
      suite.simulator.control({ busy: 3 });
      const order = newOrder(3);
      await expect(suite.provider.placeOrder(order, 'first', signal)).rejects.toBeInstanceOf(
        ProviderUnavailable,
      );
      expect(suite.simulator.state().purchases).toEqual({});
      suite.simulator.control({ busy: 1 });
      expect((await suite.provider.placeOrder(order, 'first', signal)).state).toBe('in_progress');
      expect(await suite.provider.findOrder(order, signal)).toBeNull();
      await suite.provider.placeOrder(order, 'again', signal);
      suite.expectOnePurchaseEach(order);
    });

    it('keeps its pace, so that a limit of barely over 8 a second refuses nothing', async () => {
      suite.simulator.control({ maxPerSecond: 9 });
      // Enough time for each call on a busy machine.
      const patience = { timeoutMs: 60_000, deadlineMs: 120_000 };
      const paced = suite.bench.provider({ ...suite.simulator, ...patience, requestsPerSecond: 8 });
      const order = newOrder(10);
      await paced.placeOrder(order, 'first', signal);
      expect(await paced.findOrder(order, signal)).toMatchObject({ profiles: { length: 10 } });
      expect(suite.simulator.state().refusedForPace).toBe(0);
      suite.expectOnePurchaseEach(order);
    });

    it("completes an order even if the provider's limit is below our pace", async () => {
      suite.simulator.control({ maxPerSecond: 4, dropBeforeCommit: 1 });
      const hasty = suite.bench.provider({ ...suite.simulator, requestsPerSecond: 6 });
      const order = newOrder(3);
      await hasty.placeOrder(order, 'first', signal).catch(() => null);
      // At six calls a second, Zendit would refuse the fifth of the seven calls per round, so the POST would never be
      // sent.
      expect(await recoverOrder(hasty, order)).toMatchObject({ profiles: { length: 3 } });
      suite.expectOnePurchaseEach(order);
    });

    it('rejects an order for an offer that was disabled after it was listed, and buys nothing', async () => {
      suite.simulator.control({ offers: { [BASE.upstreamPackageId]: { enabled: false } } });
      const order = newOrder(2);
      expect(await suite.provider.placeOrder(order, 'first', signal)).toMatchObject({
        state: 'rejected',
        failure: { code: 'package_unavailable' },
      });
      expect(suite.simulator.state().purchases).toEqual({});
    });

    it('completes an order of which only a part was sold before the offer was disabled', async () => {
      suite.simulator.control({ dropBeforeCommit: 1 });
      const order = newOrder(2);
      await expect(suite.provider.placeOrder(order, 'first', signal)).rejects.toBeInstanceOf(
        ProviderOutcomeUnknown,
      );
      suite.simulator.control({ offers: { [BASE.upstreamPackageId]: { enabled: false } } });
      expect(await suite.provider.placeOrder(order, 'again', signal)).toMatchObject({
        state: 'provisioned',
        profiles: { length: 1 },
        shortfall: { code: 'package_unavailable' },
      });
    });

    it('delivers eSIMs bought at a changed price, and warns about the price', async () => {
      suite.simulator.control({ offers: { [BASE.upstreamPackageId]: { costFixed: 150 } } });
      const order = newOrder();
      expect(await suite.provision(order)).toHaveLength(1);
      expect(await suite.provider.findOrder(order, signal)).toMatchObject({
        actualCost: { micros: 1_500_000, currency: 'USD' },
      });
      expect(suite.bench.log.lines.find(({ event }) => event === 'provider.cost_differs')).toMatchObject({
        paidMicros: 1_500_000,
        expectedMicros: 1_200_000,
      });
    });

    it.each(['html', 'truncated', 'huge', 'empty', 'wrongShape'] as const)(
      'buys once when the response to the purchase is %s',
      async (badAnswer) => {
        suite.simulator.control({ badAnswer, badAnswers: 1 });
        const order = newOrder();
        await expect(suite.provider.placeOrder(order, 'first', signal)).rejects.toBeInstanceOf(
          ProviderOutcomeUnknown,
        );
        suite.simulator.control({ badAnswers: 1 });
        await expect(suite.provider.findOrder(order, signal)).rejects.toBeInstanceOf(ProviderOutcomeUnknown);
        expect((await suite.provider.placeOrder(order, 'again', signal)).state).toBe('provisioned');
        suite.expectOnePurchaseEach(order);
      },
    );

    it('buys once when the response arrives after the timeout', async () => {
      suite.simulator.control({ slowMs: 60_000 });
      const hasty = suite.bench.provider({ ...suite.simulator, timeoutMs: 3_000 });
      const order = newOrder();
      await expect(hasty.placeOrder(order, 'first', signal)).rejects.toBeInstanceOf(ProviderOutcomeUnknown);
      suite.simulator.control({ slowMs: 0 });
      expect((await suite.provider.placeOrder(order, 'again', signal)).state).toBe('provisioned');
      suite.expectOnePurchaseEach(order);
    });

    it('posts nothing with a refused key, and logs it', async () => {
      const stranger = suite.bench.provider({ ...suite.simulator, apiKey: 'no'.concat('body') });
      await expect(stranger.placeOrder(newOrder(), 'first', signal)).rejects.toBeInstanceOf(
        ProviderUnavailable,
      );
      expect(suite.bench.log.events()).toContain('provider.not_authorized');
      expect(suite.simulator.state().purchases).toEqual({});
    });
  });
});
