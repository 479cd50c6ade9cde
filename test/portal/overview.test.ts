import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { newId } from '../../src/common/ids.js';
import { ACTIVITY_DAYS } from '../../src/config/index.js';
import { Transactions, type Tx } from '../../src/infra/database/index.js';
import { ActivityRepository } from '../../src/overview/activity.repository.js';
import type { OverviewResponse } from '../../src/overview/portal/overview.response.js';
import { Wallet } from '../../src/wallet/index.js';
import {
  eventually,
  startReceiver,
  startTestService,
  type TestPartner,
  type TestReceiver,
  type TestService,
} from '../harness/index.js';
import { issueEsim } from '../harness/order-steps.js';
import { copyToLive, rowsOf } from '../harness/live-rows.js';
import { openPortal, type SessionTerms } from '../harness/portal.js';
import { endpointState, recordEvent, registerEndpoint } from '../webhooks/support.js';

const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;

let service: TestService;
let receiver: TestReceiver;

beforeAll(async () => {
  service = await startTestService({ env: { SWEEP_INTERVAL_MS: '100', WEBHOOK_RETRY_DELAYS_MS: '600000' } });
  receiver = await startReceiver();
});
afterAll(async () => {
  await service.stop();
  await receiver.close();
});

async function overviewOf(
  { id }: TestPartner,
  query = 'mode=sandbox',
  terms: SessionTerms = {},
): Promise<OverviewResponse> {
  const browser = await openPortal(service.admin, service.process.portal!.url, id, terms);
  const answer = await browser.get(`overview?${query}`);
  if (answer.status !== 200) throw new Error(answer.text);
  return answer.body.data as OverviewResponse;
}

/** Buys an eSIM in Sandbox. */
async function issued({ sandbox }: TestPartner): Promise<{ id: string; order_id: string }> {
  const id = await issueEsim(sandbox, 'pkg_fr_1gb_7d');
  return (await sandbox.get(`/v1/esims/${id}`)).body.data as { id: string; order_id: string };
}

/** Counts like the worker's sweep, which may have counted a moment ago. */
async function count(): Promise<void> {
  const activity = service.process.portal!.nest.get(ActivityRepository, { strict: false });
  while (await activity.count(0));
}

const sumOf = (steps: readonly { count: number }[]): number =>
  steps.reduce((sum, step) => sum + step.count, 0);
const costOf = (overview: OverviewResponse): number =>
  overview.cost!.current.reduce((sum, step) => sum + step.cost.amount, 0);

/** Moves the partner's orders and their figures into the past. */
async function age({ id }: TestPartner, ms: number): Promise<void> {
  await service.database.pool.query(
    `UPDATE orders SET created_at = created_at - $2::bigint * interval '1 millisecond' WHERE partner_id = $1`,
    [id, ms],
  );
  await service.database.pool.query(`DELETE FROM partner_activity WHERE partner_id = $1`, [id]);
  await service.database.pool.query(
    `UPDATE partner_activity_progress SET counted_to = now() - ($1::bigint + 3600000) * interval '1 millisecond'`,
    [ms],
  );
  await count();
}

describe('the overview of the portal', () => {
  it('has as many steps before the current one as the window, twice, all empty at first', async () => {
    const partner = await service.createPartner();
    for (const [window, length, stepMs] of [
      ['24h', 24, HOUR_MS],
      ['7d', 7, DAY_MS],
      ['30d', 30, DAY_MS],
    ] as const) {
      const overview = await overviewOf(partner, `mode=sandbox&window=${window}`);
      expect(overview).toMatchObject({ window, cost: null, wallet: null, attention: [] });
      for (const series of [overview.orders!, overview.failed_orders!, overview.deliveries!]) {
        const times = [...series.previous, ...series.current].map(({ at }) => Date.parse(at));
        expect(times).toHaveLength(length * 2);
        expect(times.every((at, nth) => at === times[0]! + nth * stepMs && at % stepMs === 0)).toBe(true);
        expect(Date.now() - times.at(-1)!).toBeLessThan(stepMs + HOUR_MS);
      }
      expect(sumOf(overview.orders!.current)).toBe(0);
    }
    const refused = await openPortal(service.admin, service.process.portal!.url, partner.id);
    expect((await refused.get('overview?mode=sandbox&window=1y')).status).toBe(400);
  });

  it('is of Live without a mode, or of the only mode of the session', async () => {
    const partner = await service.createPartner();
    await issued(partner);
    await count();
    const ordersOf = async (terms: SessionTerms) =>
      sumOf((await overviewOf(partner, 'window=24h', terms)).orders!.current);
    expect(await ordersOf({})).toBe(0);
    expect(await ordersOf({ modes: ['sandbox'] })).toBe(1);
  });

  it('counts orders by their acceptance, with what was issued as their cost, however often it counts', async () => {
    const partner = await service.createPartner();
    const bought = await issued(partner);
    const { data: order } = (await partner.sandbox.get(`/v1/orders/${bought.order_id}`)).body;
    await count();
    const first = await overviewOf(partner);
    expect([sumOf(first.orders!.current), sumOf(first.failed_orders!.current)]).toEqual([1, 0]);
    expect(costOf(first)).toBe(order.total.amount);
    await Promise.all([count(), count(), count()]);
    expect((await overviewOf(partner)).cost).toEqual(first.cost);

    const failing = await partner.sandbox.post('/v1/orders', { package_id: 'pkg_test_out_of_stock' });
    await eventually('the order failed', async () => {
      const { body } = await partner.sandbox.get(`/v1/orders/${failing.body.data.id}`);
      return body.data.status === 'failed';
    });
    await count();
    const second = await overviewOf(partner);
    expect([sumOf(second.orders!.current), sumOf(second.failed_orders!.current)]).toEqual([2, 1]);
    expect(costOf(second)).toBe(order.total.amount);
  });

  it('counts an order again that ends long after its acceptance', async () => {
    const partner = await service.createPartner();
    const { order_id } = await issued(partner);
    const { pool } = service.database;
    await pool.query(`UPDATE orders SET status = 'processing', quantity_issued = 0 WHERE id = $1`, [
      order_id,
    ]);
    await age(partner, 3 * HOUR_MS);
    const open = await overviewOf(partner);
    expect([sumOf(open.orders!.current), costOf(open)]).toEqual([1, 0]);
    await pool.query(`UPDATE orders SET status = 'issued', quantity_issued = 1 WHERE id = $1`, [order_id]);
    await count();
    expect(costOf(await overviewOf(partner))).toBeGreaterThan(0);
    const { rows } = await pool.query(
      'SELECT sum(open)::int AS open FROM partner_activity WHERE partner_id = $1',
      [partner.id],
    );
    expect(rows).toEqual([{ open: 0 }]);
  });

  it('counts an order whose transaction committed minutes after its acceptance', async () => {
    const partner = await service.createPartner();
    const { order_id } = await issued(partner);
    await count();
    const { pool } = service.database;
    // As if nothing had been visible at that count.
    await pool.query('DELETE FROM partner_activity WHERE partner_id = $1', [partner.id]);
    await pool.query(`UPDATE orders SET created_at = created_at - interval '4 minutes' WHERE id = $1`, [
      order_id,
    ]);
    await count();
    expect(sumOf((await overviewOf(partner)).orders!.current)).toBe(1);
  });

  it('keeps figures for two periods of 30 days', async () => {
    const partner = await service.createPartner();
    await service.database.pool.query(
      `INSERT INTO partner_activity (partner_id, mode, at, currency, orders, failed, cost, open)
       SELECT $1, 'sandbox', now() - days * interval '1 day', 'USD', 1, 0, 0, 0 FROM unnest('{59,63}'::int[]) AS days`,
      [partner.id],
    );
    const activity = service.process.portal!.nest.get(ActivityRepository, { strict: false });
    await activity.purge(ACTIVITY_DAYS, 1_000);
    const { orders } = await overviewOf(partner, 'mode=sandbox&window=30d');
    expect([orders!.previous[0]!.count, sumOf(orders!.previous)]).toEqual([1, 1]);
    const { rows } = await service.database.pool.query(
      'SELECT count(*)::int AS kept FROM partner_activity WHERE partner_id = $1',
      [partner.id],
    );
    expect(rows).toEqual([{ kept: 1 }]);
  });

  it('shows the period before beside the current one', async () => {
    const partner = await service.createPartner();
    await issued(partner);
    await age(partner, 8 * DAY_MS);
    const week = await overviewOf(partner, 'mode=sandbox&window=7d');
    expect([sumOf(week.orders!.previous), sumOf(week.orders!.current)]).toEqual([1, 0]);
    const month = await overviewOf(partner, 'mode=sandbox&window=30d');
    expect([sumOf(month.orders!.previous), sumOf(month.orders!.current)]).toEqual([0, 1]);
  });

  it("counts deliveries, and reports an endpoint that fails, without another mode's or partner's", async () => {
    const partner = await service.createPartner();
    const other = await service.createPartner();
    const endpoint = await registerEndpoint(service, partner.id, { url: receiver.url });
    await recordEvent(service, { partnerId: partner.id });
    await eventually(
      'delivered',
      async () => (await endpointState(service, endpoint)).last_success_at !== null,
    );
    receiver.answer = (_nth, _webhook, response) => void response.writeHead(500).end();
    await recordEvent(service, { partnerId: partner.id });
    await eventually('failing', async () => (await endpointState(service, endpoint)).failing_since !== null);
    const { deliveries, attention } = await overviewOf(partner);
    expect(deliveries!.current.reduce((sum, { delivered }) => sum + delivered, 0)).toBe(1);
    expect(attention).toEqual([
      expect.objectContaining({
        kind: 'endpoint_failing',
        subject_id: endpoint.id,
        name: receiver.url,
        cause: 'server_error',
        count: 1,
      }),
    ]);
    expect((await overviewOf(partner, 'mode=live')).attention).toEqual([]);
    expect((await overviewOf(other)).deliveries!.current.every(({ delivered }) => delivered === 0)).toBe(
      true,
    );
  });

  it('shows the wallet in Live: what it lasts for, and its history with deposits', async () => {
    const partner = await service.createPartner();
    const base = `/internal/v1/partners/${partner.id}/wallet`;
    const usd = (amount: number) => ({ amount, currency: 'USD' });
    await service.admin.post(`${base}/deposits`, { amount: usd(10_000), reference: 'first' });
    const buy = async (amount: number, isSettled: boolean): Promise<void> => {
      const { nest } = service.process.admin!;
      const wallet = nest.get(Wallet, { strict: false });
      const subject = { orderId: newId('ord') };
      await nest.get(Transactions, { strict: false }).run(async (tx: Tx) => {
        await wallet.hold(tx, { partnerId: partner.id, mode: 'live', money: usd(amount), subject });
        if (isSettled) await wallet.settle(tx, [{ mode: 'live', subject, capturedAmount: amount }]);
      });
    };
    await buy(2_000, true);
    await buy(500, false);
    const { wallet } = await overviewOf(partner, 'mode=live&window=7d');
    expect(wallet).toMatchObject({
      available: usd(7_500),
      reserved: usd(500),
      average_per_day: usd(2_000),
      days_left: 3,
    });
    expect(wallet!.history).toHaveLength(7);
    expect(wallet!.history[0]).toMatchObject({ balance: usd(0), deposited: usd(0) });
    expect(wallet!.history[6]).toMatchObject({ balance: usd(8_000), deposited: usd(10_000) });
    expect(await overviewOf(partner, 'mode=sandbox')).toMatchObject({ wallet: null });
  });

  it('reports a low balance, an expiring key, refund requests and a late order, by what the session may see', async () => {
    const partner = await service.createPartner();
    const { pool } = service.database;
    const base = `/internal/v1/partners/${partner.id}`;
    const key = await service.admin.post(`${base}/api-keys`, {
      ...{ mode: 'sandbox', name: 'till' },
      expires_at: new Date(Date.now() + 3 * DAY_MS).toISOString(),
    });
    const pending = await issued(partner);
    const decided = await issued(partner);
    const late = await issued(partner);
    const request = async (esimId: string): Promise<string> => {
      const body = { esim_id: esimId, reason: 'other' };
      return (await partner.sandbox.post('/v1/refund-requests', body)).body.data.id as string;
    };
    const [waiting, rejected] = [await request(pending.id), await request(decided.id)];
    await service.admin.post(`/internal/v1/refund-requests/${rejected}/reject`, { note: 'used' });
    await pool.query(
      `UPDATE orders SET status = 'canceling', cancel_requested_at = now() - interval '1 day' WHERE id = $1`,
      [late.order_id],
    );
    const { attention } = await overviewOf(partner);
    expect(
      attention.map(({ kind, subject_id, count: many, name }) => [kind, subject_id, many, name]),
    ).toEqual([
      ['key_expiring', key.body.data.id, null, 'till'],
      ['order_needs_review', late.order_id, 1, null],
      ['refund_requested', waiting, 1, null],
      ['refund_decided', rejected, 1, null],
    ]);
    const narrow = await overviewOf(partner, 'mode=sandbox', { scopes: ['keys:read'] });
    expect(narrow).toMatchObject({
      orders: null,
      cost: null,
      failed_orders: null,
      deliveries: null,
      wallet: null,
    });
    expect(narrow.attention.map(({ kind }) => kind)).toEqual(['key_expiring']);
    expect(narrow.checklist.map(({ step }) => step)).toEqual(['live_key_created']);

    const deposit = { amount: { amount: 100, currency: 'USD' }, reference: 'small' };
    await service.admin.post(`${base}/wallet/deposits`, deposit);
    await pool.query(
      `UPDATE wallets SET low_balance_amount = 5000, low_since = now() WHERE partner_id = $1`,
      [partner.id],
    );
    const inLive = await overviewOf(partner, 'mode=live');
    expect(inLive.attention).toEqual([
      expect.objectContaining({
        kind: 'low_balance',
        subject_id: partner.id,
        available: { amount: 100, currency: 'USD' },
        threshold: { amount: 5_000, currency: 'USD' },
      }),
    ]);
    expect(inLive.wallet).toMatchObject({ low_balance: { amount: 5_000 }, days_left: null });
  });

  it('ticks the steps to go live by itself, and hides those of Live from a Sandbox session', async () => {
    const partner = await service.createPartner();
    const base = `/internal/v1/partners/${partner.id}`;
    const done = async (terms?: SessionTerms): Promise<string[]> =>
      (await overviewOf(partner, 'mode=sandbox', terms)).checklist
        .filter((step) => step.done)
        .map(({ step }) => step);
    expect(await done()).toEqual([]);
    const bought = await issued(partner);
    expect(await done()).toEqual(['first_sandbox_order']);
    receiver.answer = (_nth, _webhook, response) => void response.writeHead(200).end();
    const endpoint = await registerEndpoint(service, partner.id, { url: receiver.url });
    expect(await done()).toEqual(['first_sandbox_order', 'endpoint_created']);
    await recordEvent(service, { partnerId: partner.id });
    await eventually(
      'delivered',
      async () => (await endpointState(service, endpoint)).last_success_at !== null,
    );
    await service.admin.post(`${base}/api-keys`, { mode: 'live' });
    const money = { amount: { amount: 100, currency: 'USD' }, reference: 'first' };
    await service.admin.post(`${base}/wallet/deposits`, money);
    await copyToLive(service.database, await rowsOf(service.database, bought.order_id));
    expect(await done()).toEqual([
      ...['first_sandbox_order', 'endpoint_created', 'endpoint_received_2xx'],
      ...['live_key_created', 'wallet_funded', 'first_live_order'],
    ]);
    expect(await done({ modes: ['sandbox'] })).toEqual([
      ...['first_sandbox_order', 'endpoint_created', 'endpoint_received_2xx'],
    ]);
  });

  it('is counted by the worker', async () => {
    const partner = await service.createPartner();
    await issued(partner);
    await eventually(
      'the order is in the figures',
      async () => sumOf((await overviewOf(partner)).orders!.current) === 1,
    );
  });
});
