import { afterAll, beforeAll, expect, it } from 'vitest';
import { EsimDevice } from '../harness/esim-device.js';
import { orderEnded, placeOrder } from '../harness/order-steps.js';
import { eventually, startTestService, type TestPartner, type TestService } from '../harness/index.js';
import { ownSweepsHaveRun } from '../harness/own-sweeps.js';
import { BASE, TOPUP_1GB_7D } from '../topups/topup-steps.js';
import { sandboxOrderPurge } from './purge-by-hand.js';

let service: TestService;
let partner: TestPartner;

beforeAll(async () => {
  service = await startTestService();
  partner = await service.createPartner('Returning');
});
afterAll(() => service.stop());

it('returns the same 404 for a top-up or refund request that waits during the purge of its order as for an unknown eSIM', async () => {
  const { pool } = service.database;
  const placed = await placeOrder(partner.sandbox, { package_id: BASE, quantity: 1 });
  const orderId = String(placed['id']);
  const order = await orderEnded(partner.sandbox, orderId);
  const esimId = (order['esims'] as { esim_id: string }[])[0]!.esim_id;
  await new EsimDevice(partner.sandbox).played(esimId, 'activate');
  await ownSweepsHaveRun(service, 'retention.sandbox_orders');
  await pool.query(`UPDATE orders SET created_at = created_at - interval '91 days' WHERE id = $1`, [orderId]);
  const waiting = (statement: string) =>
    eventually(`${statement} waits`, async () => {
      const { rowCount } = await pool.query(
        `SELECT 1 FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock' AND query LIKE $1`,
        [`%${statement}%`],
      );
      return rowCount! > 0;
    });
  const other = await pool.connect();
  // Makes the purge wait in its transaction while it locks the order.
  await other.query('BEGIN');
  await other.query('SELECT 1 FROM esims WHERE id = $1 FOR UPDATE', [esimId]);
  const purge = sandboxOrderPurge(service).purge();
  await waiting('DELETE FROM esims');
  const topup = partner.sandbox.post('/v1/topups', { esim_id: esimId, package_id: TOPUP_1GB_7D });
  const refund = partner.sandbox.post('/v1/refund-requests', { esim_id: esimId, reason: 'other' });
  await waiting('FOR SHARE OF o');
  await waiting('"OrderEntity"');
  await other.query('COMMIT');
  other.release();
  expect(await purge).toBe(1);
  for (const answer of [await topup, await refund])
    expect(answer).toMatchObject({ status: 404, body: { code: 'not_found' } });
});
