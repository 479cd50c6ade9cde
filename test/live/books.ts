import { expect } from 'vitest';
import { eventually } from '../harness/index.js';
import { type Json, readFeed } from '../harness/order-steps.js';
import { expectBooksToAddUp } from '../wallet/books.js';
import { type Buyer, type LiveShop, money, readAll } from './shop.js';
import type { Upstream } from './upstream.js';

/**
 * Checks everything that must hold once nothing is in progress, whatever went wrong. Each reference was bought at most
 * once at its provider, charges match the issued eSIMs, each result was announced once, and statements add up.
 */
export async function expectBooksInOrder(shop: LiveShop): Promise<void> {
  await expectBooksToAddUp(shop.database);
  await expectNothingLeftOver(shop);
  for (const upstream of shop.upstreams) await expectUpstreamBooks(shop, upstream);
  for (const buyer of shop.buyers) {
    await expectStatement(buyer);
    await expectEvents(shop, buyer);
  }
}

/** Checks in addition to `expectBooksToAddUp`. */
const LEFTOVERS: Readonly<Record<string, string>> = {
  'orders or top-ups under way': `
    SELECT id FROM orders WHERE status IN ('pending', 'processing', 'canceling') OR next_attempt_at IS NOT NULL
       OR lease_until IS NOT NULL
    UNION ALL SELECT id FROM topups WHERE status IN ('pending', 'processing') OR next_attempt_at IS NOT NULL`,
  'holds of what has ended': `SELECT order_id, topup_id FROM wallet_holds WHERE status = 'active'`,
  'overdrawn wallets': `SELECT id FROM wallets WHERE posted < 0 OR held <> 0`,
  'transactions whose entries do not sum to 0': `
    SELECT t.id FROM ledger_transactions t JOIN ledger_entries e ON e.transaction_id = t.id
    GROUP BY t.id HAVING sum(e.amount) <> 0 OR count(*) <> 2`,
  'transactions without entries': `
    SELECT t.id FROM ledger_transactions t
    WHERE NOT EXISTS (SELECT 1 FROM ledger_entries e WHERE e.transaction_id = t.id)`,
  'orders charged more than once': `
    SELECT order_id FROM ledger_transactions WHERE type = 'charge' AND order_id IS NOT NULL
    GROUP BY order_id HAVING count(*) > 1`,
  'top-ups whose charge is not their price once': `
    SELECT t.id, t.status FROM topups t LEFT JOIN ledger_transactions l ON l.topup_id = t.id AND l.type = 'charge'
    WHERE t.mode = 'live' GROUP BY t.id
    HAVING coalesce(-sum(l.amount), 0) <> CASE WHEN t.status = 'completed' THEN t.price_amount ELSE 0 END`,
  'orders with more or fewer eSIMs than they issued': `
    SELECT o.id FROM orders o LEFT JOIN esims e ON e.order_id = o.id
    GROUP BY o.id HAVING count(e.id) <> o.quantity_issued`,
  'eSIMs of the upstream that we issued twice': `
    SELECT provider, provider_esim_id FROM esims GROUP BY 1, 2 HAVING count(*) > 1`,
  'canceled orders that were not refunded in full': `
    SELECT o.id FROM orders o LEFT JOIN ledger_transactions l ON l.order_id = o.id AND l.type = 'refund'
    GROUP BY o.id HAVING coalesce(sum(l.amount), 0)
      <> CASE WHEN o.status = 'canceled' THEN o.unit_price_amount * o.quantity_issued ELSE 0 END`,
};

async function expectNothingLeftOver({ database }: LiveShop): Promise<void> {
  for (const [what, query] of Object.entries(LEFTOVERS)) {
    expect((await database.pool.query(query)).rows, what).toEqual([]);
  }
}

/** Compares our orders and top-ups with the provider's ledger, reference by reference. */
async function expectUpstreamBooks({ database }: LiveShop, upstream: Upstream): Promise<void> {
  const orders = await database.pool.query<Json>('SELECT * FROM orders WHERE provider = $1', [upstream.name]);
  for (const order of orders.rows) {
    const sold = Number(order['quantity_issued']);
    expect(upstream.account(order['provider_reference'] as string), `order ${order['id']} upstream`).toEqual({
      bought: sold,
      canceled: order['status'] === 'canceled' ? sold : 0,
      open: 0,
    });
  }
  const topups = await database.pool.query<Json>('SELECT * FROM topups WHERE provider = $1', [upstream.name]);
  for (const topup of topups.rows) {
    expect(upstream.topupsOf(topup['provider_reference'] as string), `top-up ${topup['id']} upstream`).toBe(
      topup['status'] === 'completed' ? 1 : 0,
    );
  }
  const ours = new Set([...orders.rows, ...topups.rows].map((row) => row['provider_reference'] as string));
  expect(upstream.references().filter((reference) => !ours.has(reference))).toEqual([]);
  expect(upstream.repeats(), 'placements that were sent although they were known').toBe(0);
}

/** Checks that each balance follows from the previous one, and that the last one is the wallet's. */
async function expectStatement(buyer: Buyer): Promise<void> {
  const items = (await readAll(buyer, '/v1/transactions')).reverse();
  let balance = 0;
  for (const item of items) {
    balance += item['amount'].amount as number;
    expect(item['balance_after'], item['id'] as string).toEqual({ amount: balance, currency: 'USD' });
    expect(balance).toBeGreaterThanOrEqual(0);
  }
  expect(await money(buyer)).toEqual([balance, 0, balance]);
}

/**
 * Expects one event for each order or top-up that has ended, and for each cancellation, with exactly the documented fields (D28), in the feed
 * and as a webhook.
 */
async function expectEvents({ receiver }: LiveShop, buyer: Buyer): Promise<void> {
  const orders = await readAll(buyer, '/v1/orders');
  const topups = await readAll(buyer, '/v1/topups');
  const orderOf = new Map(
    orders.flatMap((order) => (order['esims'] as Json[]).map((esim) => [esim['esim_id'], order['id']])),
  );
  const owed = [
    ...orders.map(eventOfOrder),
    ...orders.filter(({ status }) => status === 'canceled').map(eventOfCancellation),
    ...topups.map((topup) => eventOfTopup(topup, orderOf.get(topup['esim_id']) as string)),
  ];
  const feed = (await readFeed(buyer.api)).filter(({ type }) => (type as string).startsWith('order.'));
  const said = feed.map(({ type, data }) => ({ type, data: withSortedEsims(data as Json) }));
  const byKey = (a: Json, b: Json): number => keyOf(a).localeCompare(keyOf(b));
  expect(said.sort(byKey)).toEqual(owed.sort(byKey));
  await eventually(`partner ${buyer.id} has every webhook`, () => {
    const bodies = new Map<string, Set<string>>();
    for (const { body } of receiver.received) {
      const { id } = JSON.parse(body) as { id: string };
      bodies.set(id, (bodies.get(id) ?? new Set()).add(body));
    }
    // The endpoint has no `event_types`, so it receives the default types alone (D58).
    return feed.every(
      ({ id, type }) => (bodies.get(id as string)?.size ?? 0) === Number(type !== 'order.canceled'),
    );
  });
}

function keyOf({ type, data }: Json): string {
  return `${(data.topup_id ?? data.order_id) as string} ${type as string}`;
}

function eventOfOrder(order: Json): Json {
  const { id: order_id, reference, package_id, quantity_issued, quantity_failed } = order;
  if (order['status'] === 'failed') {
    const { code, reason } = order['failure'] as Json;
    const refunded = order['total'] as Json;
    const data = { order_id, reference, package_id, code, reason, refunded, version: order['version'] };
    return { type: 'order.failed', data };
  }
  const esims = (order['esims'] as Json[]).map(({ esim_id, iccid }) => ({ esim_id, iccid }));
  // The version of that change. A cancellation, even a refused one, has a later version (D48).
  const wasLast = order['status'] !== 'canceled' && !order['cancel_failure'];
  const version: unknown = wasLast ? order['version'] : expect.any(Number);
  const data = { order_id, reference, package_id, quantity_issued, quantity_failed, esims, version };
  return { type: 'order.issued', data: withSortedEsims(data) };
}

function eventOfCancellation(order: Json): Json {
  const { id: order_id, reference, package_id, version } = order;
  const refunded = { amount: order['unit_price'].amount * order['quantity_issued'], currency: 'USD' };
  return { type: 'order.canceled', data: { order_id, reference, package_id, refunded, version } };
}

function eventOfTopup(topup: Json, order_id: string): Json {
  const { id: topup_id, esim_id, iccid, package_id, reference } = topup;
  const identity = { topup_id, esim_id, order_id, iccid, package_id, reference, version: topup['version'] };
  if (topup['status'] === 'failed') {
    const { code, reason } = topup['failure'] as Json;
    return { type: 'order.topup.failed', data: { ...identity, code, reason } };
  }
  const { data_added_bytes, validity_added_days } = topup;
  return { type: 'order.topup.completed', data: { ...identity, data_added_bytes, validity_added_days } };
}

function withSortedEsims(data: Json): Json {
  if (!data['esims']) return data;
  const esims = [...(data['esims'] as { esim_id: string }[])];
  return { ...data, esims: esims.sort((a, b) => a.esim_id.localeCompare(b.esim_id)) };
}
