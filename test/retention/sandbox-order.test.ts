import { afterAll, beforeAll, expect, it } from 'vitest';
import { DEFAULT_RETENTION } from '../../src/config/index.js';
import { IdempotencyKeysRepository } from '../../src/infra/idempotency/index.js';
import { EsimDevice } from '../harness/esim-device.js';
import { orderEnded, placeOrder } from '../harness/order-steps.js';
import {
  eventually,
  loggedCall,
  startReceiver,
  startTestService,
  type TestPartner,
  type TestReceiver,
  type TestService,
} from '../harness/index.js';
import { ownSweepsHaveRun } from '../harness/own-sweeps.js';
import { registerEndpoint } from '../webhooks/support.js';
import { maintainDays, sandboxOrderPurge } from './purge-by-hand.js';
import { BASE, topUp } from '../topups/topup-steps.js';

let service: TestService;
let receiver: TestReceiver;
let partner: TestPartner;

beforeAll(async () => {
  service = await startTestService();
  receiver = await startReceiver();
  partner = await service.createPartner('Passer-by');
});

afterAll(async () => {
  await service.stop();
  await receiver.close();
});

/** Rows that contain one of the ids, by table, in every table including the queue's. */
async function rowsWith(ids: readonly string[]): Promise<Record<string, number>> {
  const { rows: tables } = await service.database.pool.query<{ name: string }>(
    `SELECT format('%I.%I', table_schema, table_name) AS name FROM information_schema.tables
     WHERE table_schema NOT IN ('pg_catalog', 'information_schema') AND table_type = 'BASE TABLE'`,
  );
  const found: Record<string, number> = {};
  for (const { name } of tables) {
    const { rows } = await service.database.pool.query<{ n: number }>(
      `SELECT count(*)::int AS n FROM ${name} AS t WHERE t::text LIKE ANY ($1)`,
      [ids.map((id) => `%${id}%`)],
    );
    if (rows[0]!.n > 0) found[name.replace(/_p\d{8}$/, '')] = rows[0]!.n;
  }
  return found;
}

/** Runs the worker's retention as if the longest one had passed, so that every day is old. */
async function letTimePass(): Promise<void> {
  const { pool } = service.database;
  for (const table of ['orders', 'esims', 'topups'])
    await pool.query(`UPDATE ${table} SET created_at = created_at - interval '91 days'`);
  await pool.query(`UPDATE idempotency_keys SET expires_at = now() - interval '1 second'`);
  expect(await sandboxOrderPurge(service).purge()).toBe(1);
  await new IdempotencyKeysRepository().purgeExpired(service.process.resources.dataSource.manager, 1_000);
  // Partitions are created this many days ahead, so all of them count as old.
  const past = { live: -8, sandbox: -8 };
  await maintainDays(service, { ...DEFAULT_RETENTION, eventDays: past, attemptDays: -8, callLogDays: -8 });
}

it('completely deletes an order of 20 eSIMs, its top-up, rule, refund request, webhooks and calls after their retention (D44)', async () => {
  await registerEndpoint(service, partner.id, { url: receiver.url });
  const placed = await placeOrder(partner.sandbox, { package_id: BASE, quantity: 20 });
  const order = await orderEnded(partner.sandbox, String(placed['id']));
  const esims = (order['esims'] as { esim_id: string }[]).map((esim) => esim.esim_id);
  expect(esims).toHaveLength(20);
  await new EsimDevice(partner.sandbox).played(esims[0]!, 'activate');
  const topup = await topUp(partner.sandbox, esims[0]!);
  const refund = await partner.sandbox.post('/v1/refund-requests', { esim_id: esims[0], reason: 'other' });
  expect(refund.status, refund.text).toBe(202);
  const { package_id, price: max_price } = topup;
  const rule = {
    at_percent: 80,
    package_id: package_id as string,
    max_times: 1,
    max_price: max_price as object,
  };
  const set = await partner.sandbox.call('PUT', `/v1/esims/${esims[0]}/auto-topup`, { body: rule });
  expect(set.status, set.text).toBe(200);
  await eventually('nothing is owed', async () => {
    const { rows } = await service.database.pool.query(
      `SELECT count(*) FILTER (WHERE status = 'delivered')::int AS sent, count(*)::int AS n FROM webhook_deliveries`,
    );
    return rows[0].n === 3 && rows[0].sent === 3;
  });
  const { rows } = await service.database.pool.query<{ id: string; reference: string }>(
    `SELECT id, NULL AS reference FROM events UNION ALL SELECT id, NULL FROM webhook_deliveries
     UNION ALL SELECT id, provider_reference FROM orders UNION ALL SELECT id, provider_reference FROM topups`,
  );
  // The last call that names them.
  await loggedCall(service.admin, await partner.sandbox.get(`/v1/orders/${order['id'] as string}`));
  const ids = [...esims, String(topup['id']), ...rows.flatMap(({ id, reference }) => [id, reference ?? id])];
  const before = await rowsWith(ids);
  for (const table of [
    'orders',
    'esims',
    'topups',
    'refund_requests',
    'sandbox_upstream_orders',
    'sandbox_upstream_topups',
    'api_calls',
  ])
    expect(before[`public.${table}`], table).toBeGreaterThan(0);
  expect(before['public.events_sandbox']).toBe(4);
  expect(before['public.webhook_deliveries_sandbox']).toBe(3);
  await ownSweepsHaveRun(service, 'retention.sandbox_orders', 'idempotency.purge', 'database.partitions');
  await letTimePass();
  expect(await rowsWith(ids)).toEqual({});
});
