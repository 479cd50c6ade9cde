import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { ProviderOutcomeUnknown } from '../../src/providers/index.js';
import { eventually } from '../harness/index.js';
import type { Json } from '../harness/order-steps.js';
import { type LiveBuyer, LiveShop, PACKAGE, place, PRICE } from './live-shop.js';
import { SupportDesk } from './support-desk.js';

let shop: LiveShop;
let desk: SupportDesk;
let buyer: LiveBuyer;

beforeAll(async () => {
  // Alerts come with every 15th sweep.
  shop = await LiveShop.open({ SWEEP_INTERVAL_MS: '50' });
  desk = new SupportDesk(shop);
  await shop.startWorker();
  buyer = await shop.buyer(10 * PRICE);
});

afterAll(() => shop.close());

type Since = 'created_at' | 'cancel_requested_at';

/** An order that its provider says nothing about. */
async function stuckOrder(quantity = 1): Promise<string> {
  shop.liveProvider.script = [() => ({ state: 'in_progress', checkAfterMs: 3_600_000 })];
  const { id } = await place(buyer, quantity);
  await desk.atRest(id as string);
  return id as string;
}

async function issuedOrder(): Promise<string> {
  const { id } = await place(buyer);
  await shop.settled(buyer, id as string);
  return id as string;
}

/** The provider does not answer. */
async function cancelInVain(id: string): Promise<void> {
  shop.liveProvider.cancelState = () => {
    throw new ProviderOutcomeUnknown();
  };
  expect((await buyer.live.post(`/v1/orders/${id}/cancel`)).status).toBe(202);
  await desk.atRest(id);
}

/** Fifteen minutes is the default limit. */
function backdate(id: string, column: Since, minutes: number): Promise<void> {
  return desk.change(id, `${column} = now() - interval '${minutes} minutes'`);
}

async function listed(): Promise<Json[]> {
  return (await shop.office.admin.get('/internal/v1/orders/needs-review?limit=100')).body.data as Json[];
}

/** The alerts about the order, oldest first, once there are `count`. */
async function alertsAbout(id: string, count: number): Promise<Json[]> {
  return eventually(`${count} alerts about order ${id}`, async () => {
    const path = `/internal/v1/alerts?type=order.needs_review&subject_id=${id}`;
    const alerts = (await shop.office.admin.get(path)).body.data as Json[];
    return alerts.length >= count ? alerts.map((alert) => alert['details'] as Json) : null;
  });
}

/** As its alert names it. */
async function sinceOf(id: string, column: Since): Promise<string> {
  return ((await shop.row(id))[column] as Date).toISOString();
}

describe('orders that need review', () => {
  it('are those without an answer for too long, oldest first, with what support needs', async () => {
    const [older, younger] = [await stuckOrder(), await stuckOrder(2)];
    expect(await listed()).toEqual([]);
    await backdate(younger, 'created_at', 16);
    await backdate(older, 'created_at', 17);
    const row = await shop.row(younger);
    const items = await listed();
    expect(items.map((item) => item['order_id'])).toEqual([older, younger]);
    expect(items[1]).toMatchObject({
      partner_id: buyer.id,
      mode: 'live',
      status: 'processing',
      package_id: PACKAGE,
      quantity: 2,
      total: { amount: 2 * PRICE, currency: 'USD' },
      provider: 'stub',
      provider_reference: row['provider_reference'],
      upstream_package_id: 'UP-1',
      upstream_attempts: 1,
      last_error: null,
      since: (row['created_at'] as Date).toISOString(),
      placed_at: (row['upstream_placed_at'] as Date).toISOString(),
    });

    const first = (await shop.office.admin.get('/internal/v1/orders/needs-review?limit=1')).body;
    expect([first.data[0].order_id, first.has_more]).toEqual([older, true]);
    const next = await shop.office.admin.get(
      `/internal/v1/orders/needs-review?limit=1&cursor=${first.next_cursor}`,
    );
    expect(next.body.data[0].order_id).toBe(younger);
    for (const id of [older, younger]) await desk.reconcile(id, 'mark_failed');
    expect(await listed()).toEqual([]);
  });

  it('include cancellations, from when they were asked for', async () => {
    const id = await issuedOrder();
    await backdate(id, 'created_at', 1_440);
    await cancelInVain(id);
    expect(await listed()).toEqual([]);
    await backdate(id, 'cancel_requested_at', 16);
    const [item] = await listed();
    expect(item).toMatchObject({ order_id: id, status: 'canceling', last_error: 'ProviderOutcomeUnknown' });
    shop.liveProvider.cancelState = () => ({ state: 'canceled' });
    expect((await desk.reconcile(id, 'requery')).status).toBe(200);
    expect(await shop.settled(buyer, id)).toMatchObject({ status: 'canceled' });
  });
});

describe('alerts of what needs review', () => {
  it('come once for an order, and once for each of its cancellations that hangs', async () => {
    const stuck = await stuckOrder();
    await backdate(stuck, 'created_at', 16);
    const id = await issuedOrder();
    const since: string[] = [];
    for (const minutes of [17, 16]) {
      await cancelInVain(id);
      await backdate(id, 'cancel_requested_at', minutes);
      since.push(await sinceOf(id, 'cancel_requested_at'));
      expect(await alertsAbout(id, since.length)).toEqual(
        since.map((each) => ({ status: 'canceling', provider: 'stub', since: each })),
      );
      expect((await desk.reconcile(id, 'mark_issued')).body.data.status).toBe('issued');
    }
    // Every sweep has met this one again.
    expect(await alertsAbout(stuck, 1)).toEqual([
      { status: 'processing', provider: 'stub', since: await sinceOf(stuck, 'created_at') },
    ]);
  });

  it('come for every other order when that of one cannot be stored (D43)', async () => {
    const [refused, other] = [await stuckOrder(), await stuckOrder()];
    const { pool } = shop.database;
    await pool.query(
      `ALTER TABLE alerts ADD CONSTRAINT poisoned CHECK (subject_id <> '${refused}') NOT VALID`,
    );
    try {
      await backdate(refused, 'created_at', 18);
      await backdate(other, 'created_at', 16);
      expect(await alertsAbout(other, 1)).toHaveLength(1);
      expect(await alertsAbout(refused, 0)).toEqual([]);
    } finally {
      await pool.query('ALTER TABLE alerts DROP CONSTRAINT poisoned');
    }
    expect(await alertsAbout(refused, 1)).toHaveLength(1);
  });
});
