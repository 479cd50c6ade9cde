import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { UNSTATED_TERMS } from '../../src/catalog/index.js';
import { gigabytesToBytes, toProviderCost } from '../../src/providers/zendit/zendit-amounts.js';
import { eventually, startReceiver } from '../harness/index.js';
import { listPackages } from './listed-packages.js';
import { newOrder, signal, ZenditSuite } from './zendit-suite.js';

describe('catalog and callbacks of Zendit', () => {
  const suite = ZenditSuite.use();

  describe('the package list', () => {
    it('includes every offer of every page, as a base package and as a top-up', async () => {
      suite.simulator.control({ maxPageSize: 7 });
      const packages = await listPackages(suite.provider);
      const ids = (kind: string) => packages.filter((p) => p.kind === kind).map((p) => p.upstreamId);
      expect(ids('base')).toHaveLength(31);
      expect(new Set(ids('base')).size).toBe(31);
      expect(ids('topup')).toEqual(ids('base'));
      expect(suite.simulator.state().calls['GET /esim/offers']).toBe(5);
    });

    it('translates country, region, unlimited and disabled offers', async () => {
      const packages = await listPackages(suite.provider);
      const get = (upstreamId: string) =>
        packages.find((p) => p.upstreamId === upstreamId && p.kind === 'base');
      expect(get('ESIM-FR-7D-1GB')).toEqual({
        upstreamId: 'ESIM-FR-7D-1GB',
        kind: 'base',
        title: 'France',
        coverage: ['FR'],
        regionName: null,
        dataBytes: 1_000_000_000,
        unlimited: false,
        voiceMinutes: null,
        smsCount: null,
        validityDays: 7,
        activationPolicy: 'on_first_use',
        topupSupported: true,
        networks: [],
        cost: { micros: 1_200_000, currency: 'USD' },
        suggestedRetail: { micros: 1_680_000, currency: 'USD' },
        available: true,
        speedPolicy: null,
        notes: '1 GB for 7 days',
        terms: {
          ...UNSTATED_TERMS,
          maxGeneration: '5G',
          topup: { kinds: ['plan'], behavior: 'queues', maxCount: null },
        },
      });
      expect(get('ESIM-ASIA-15D-1.5GB')).toMatchObject({
        title: 'Asia',
        regionName: 'Asia',
        coverage: ['HK', 'ID', 'JP', 'KR', 'MY', 'PH', 'SG', 'TH', 'TW', 'VN'],
        dataBytes: 1_500_000_000,
      });
      expect(get('ESIM-FR-10D-UNLIMITED')).toMatchObject({ dataBytes: null, unlimited: true });
      expect(get('ESIM-CU-7D-1GB')).toMatchObject({ available: false });
      expect(get('ESIM-GB-30D-20GB-VOICE')).toMatchObject({ voiceMinutes: 120, smsCount: 50 });
      expect(get('ESIM-PT-1D-0.1GB')).toMatchObject({
        dataBytes: 100_000_000,
        cost: { micros: 455_000, currency: 'USD' },
      });
    });

    it('omits an offer without a usable price, and includes the others', async () => {
      suite.simulator.control({ offers: { 'ESIM-FR-7D-1GB': { costFixed: 1.5 } } });
      const packages = await listPackages(suite.provider);
      expect(packages).toHaveLength(60);
      expect(suite.bench.log.events()).toContain('provider.offers_skipped');
    });

    it('uses millionths for the balance', async () => {
      suite.simulator.control({ balance: 123_456 });
      expect(await suite.provider.getBalance(signal)).toEqual({ micros: 1_234_560_000, currency: 'USD' });
    });
  });

  describe('number conversion', () => {
    it('turns GB into bytes without a rounding error', () => {
      fc.assert(
        fc.property(fc.integer({ min: 0, max: 9_999_999_999_999 }), (bytes) => {
          const dataGB = Number(`${bytes}e-9`);
          expect(gigabytesToBytes(dataGB, 'dataGB')).toBe(bytes);
        }),
      );
      expect(gigabytesToBytes(0.1 + 0.2, 'dataGB')).toBe(300_000_000);
      for (const wrong of [-1, Infinity, NaN, 1e22])
        expect(() => gigabytesToBytes(wrong, 'dataGB')).toThrow();
    });

    it('never understates a cost', () => {
      expect(toProviderCost(1, 3_000_000, 'USD').micros).toBe(1);
      expect(toProviderCost(-1, 100, 'USD').micros).toBe(-10_000);
      expect(() => toProviderCost(1, 0, 'USD')).toThrow();
    });
  });

  describe('a webhook', () => {
    it('yields the order as a hint for every body, early, duplicated or late', async () => {
      const receiver = await startReceiver();
      try {
        suite.simulator.control({
          finishAfterMs: 50,
          webhookUrl: receiver.url,
          webhookHeader: { name: 'x-zendit-test', value: 'constant' },
          webhookCopies: 2,
          webhookDisordered: true,
        });
        const order = newOrder();
        await suite.provider.placeOrder(order, 'first', signal);
        const posts = () => receiver.received.filter(({ body }) => body !== '');
        await eventually('three webhooks', () => posts().length === 3);
        const bodies = posts().map(({ body }) => JSON.parse(body));
        expect(bodies.map(({ status }) => status)).toEqual(['DONE', 'DONE', 'IN_PROGRESS']);
        for (const body of bodies)
          expect(suite.provider.hintsOf(body)).toEqual([{ about: 'order', reference: order.reference }]);
        expect(posts()[0]!.headers['x-zendit-test']).toBe('constant');
      } finally {
        await receiver.close();
      }
    });

    it('yields the reference of a top-up unchanged, and no hint for anything else', () => {
      const hints = (transactionId: unknown) => suite.provider.hintsOf({ transactionId });
      expect(hints('top_01ABC')).toEqual([{ about: 'order', reference: 'top_01ABC' }]);
      for (const strange of [7, '', 'a b', 'x'.repeat(129), null]) expect(hints(strange)).toEqual([]);
      expect(suite.provider.hintsOf(null)).toEqual([]);
    });
  });
});
