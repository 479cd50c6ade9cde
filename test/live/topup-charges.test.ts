import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import type { TopupFaults } from '../../simulators/esim-access/topup-faults.js';
import { eventually } from '../harness/index.js';
import type { Json } from '../harness/order-steps.js';
import { EsimAccessUpstream } from './esim-access-upstream.js';
import { buy, type Buyer, esimIdsOf, LiveShop, money, priceOf, settled, topUp } from './shop.js';

/** Longer than the shop's read lag, after which the top-up counts as absent. */
const LATE_MS = 60_000;
const NEVER_MS = 3_600_000;
const EVERY_ANSWER = 100;

let upstream: EsimAccessUpstream;
let shop: LiveShop;
let buyer: Buyer;
let topupPrice: number;

beforeAll(async () => {
  upstream = await EsimAccessUpstream.start();
  shop = await LiveShop.open([upstream]);
  topupPrice = await priceOf(shop.buyers[0]!, upstream.topupPackageId);
  buyer = await shop.buyer(100_000);
});

afterEach(() => {
  upstream.simulator.control({ faults: { topups: null } });
  upstream.calmDown();
});

afterAll(() => shop.close());

interface Sold {
  readonly topup: Json;
  /** How often the provider has charged the eSIM for a top-up, under any reference. */
  readonly charges: () => number;
}

/** Creates an eSIM and a top-up that the provider handles with `faults`. */
async function sell(faults: Partial<TopupFaults>): Promise<Sold> {
  const [esimId] = esimIdsOf(await buy(buyer, upstream.packageId));
  const upstreamId = (await shop.row(esimId!))['provider_esim_id'] as string;
  upstream.simulator.control({ faults: { topups: faults } });
  const topup = await topUp(buyer, esimId!, upstream.topupPackageId);
  return { topup, charges: () => upstream.simulator.state().topupsOfEsims[upstreamId] ?? 0 };
}

async function alertsOf({ id }: Json): Promise<readonly unknown[]> {
  const answer = await shop.office.admin.get(`/internal/v1/alerts?subject_id=${id}`);
  expect(answer.status, answer.text).toBe(200);
  return (answer.body.data as Json[]).map((alert) => [alert['type'], alert['details'].what]);
}

async function needsReview({ id }: Json): Promise<boolean> {
  const answer = await shop.office.admin.get('/internal/v1/topups/needs-review?limit=100');
  return (answer.body.data as Json[]).some((topup) => topup['topup_id'] === id);
}

async function decide({ id }: Json, action: string): Promise<number> {
  const body = { action, note: 'asked the wholesaler' };
  return (await shop.office.admin.post(`/internal/v1/topups/${id}/reconcile`, body)).status;
}

/** Waits until the worker has found that it must not place again. */
async function atItsLimit({ id }: Json): Promise<void> {
  await eventually(
    'the repetition is over',
    async () => (await shop.row(id as string))['last_error'] === 'RepeatLimitReached',
  );
}

const ONCE: readonly (readonly [string, Partial<TopupFaults>])[] = [
  ['its own id, but shown late', { lateEntry: LATE_MS }],
  ['its own id, in a lost answer', { lostAnswer: EVERY_ANSWER }],
  ['another id, in a lost answer', { otherId: true, lostAnswer: EVERY_ANSWER }],
  ['no id, in a lost answer', { noId: true, lostAnswer: EVERY_ANSWER }],
  ['the id of the order, in a lost answer', { orderId: true, lostAnswer: EVERY_ANSWER }],
  [
    'the base package’s code without an id, in a lost answer',
    { baseCodeWithoutId: true, lostAnswer: EVERY_ANSWER },
  ],
];

describe('an eSIM Access top-up that is applied', () => {
  it.each(ONCE)('completes by itself with one charge if it is listed under %s', async (_name, faults) => {
    const before = await money(buyer);
    const basePrice = await priceOf(buyer, upstream.packageId);
    const { topup, charges } = await sell(faults);
    expect(await settled(buyer, topup)).toMatchObject({ status: 'completed' });
    expect(charges()).toBe(1);
    expect(await alertsOf(topup)).toEqual([]);
    expect((await money(buyer))[0]).toBe(before[0] - basePrice - topupPrice);
  });

  it('costs two charges if it appears late and its response is lost, and alerts support before the second', async () => {
    const { topup, charges } = await sell({ lateEntry: LATE_MS, lostAnswer: 1 });
    expect(await settled(buyer, topup)).toMatchObject({ status: 'completed' });
    expect(charges()).toBe(2);
    expect(await alertsOf(topup)).toEqual([['topup.needs_review', 'placed_again']]);
  });

  it.each([
    ['another id', { otherId: true }, 'mark_completed', 'completed'],
    ['no id', { noId: true }, 'mark_failed', 'failed'],
    ['the id of the order', { orderId: true }, 'mark_completed', 'completed'],
    ['the base package’s code without an id', { baseCodeWithoutId: true }, 'mark_failed', 'failed'],
  ] as const)(
    'costs two charges under %s if it never appears and every response is lost, and support settles it',
    async (_name, faults, decision, end) => {
      const { topup, charges } = await sell({ ...faults, lateEntry: NEVER_MS, lostAnswer: EVERY_ANSWER });
      await atItsLimit(topup);
      expect(charges()).toBe(2);
      expect(await alertsOf(topup)).toEqual([['topup.needs_review', 'placed_again']]);
      expect(await needsReview(topup)).toBe(true);
      // After a requery by support, the worker looks it up again and buys nothing.
      await shop.database.pool.query(`UPDATE topups SET last_error = NULL WHERE id = $1`, [topup['id']]);
      expect(await decide(topup, 'requery')).toBe(200);
      await atItsLimit(topup);
      expect(charges()).toBe(2);
      // The list proves nothing. Support has seen the provider's bill and decides either way.
      await eventually('support may decide', async () => (await decide(topup, decision)) === 200);
      expect(await settled(buyer, topup)).toMatchObject({ status: end });
      expect(await needsReview(topup)).toBe(false);
    },
  );
});
