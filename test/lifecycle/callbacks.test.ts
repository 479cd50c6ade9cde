import { randomBytes } from 'node:crypto';
import type { ControlBody } from '../../simulators/zendit/simulator.js';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { eventually } from '../harness/index.js';
import { placeOrder } from '../harness/order-steps.js';
import { inUse, type LiveEsim, LiveWorld } from './live-world.js';

let world: LiveWorld;

beforeAll(async () => {
  world = await LiveWorld.open();
});
afterAll(() => world.close());
afterEach(() => {
  world.esimAccess.control({ callbacks: { url: null, delayMs: 0, copies: 1, disorder: false } });
  world.zendit.control({ reset: true });
});

/** What eSIM Access would send about the eSIM, true or not. */
function statusCallback(esim: Pick<LiveEsim, 'upstreamId'>, esimStatus = 'IN_USE'): object {
  const content = { esimTranNo: esim.upstreamId, iccid: '8985', esimStatus, smdpStatus: 'ENABLED' };
  return { notifyType: 'ESIM_STATUS', notifyId: randomBytes(8).toString('hex'), content };
}

describe('callbacks of eSIM Access', () => {
  it('lead to a new reading, and that to the state, the usage and the events', async () => {
    const esim = await world.issueOne('esim_access');
    world.esimAccess.control({ callbacks: { url: world.callbackUrl('esim_access') } });
    world.change(esim, inUse(0.55));
    const row = await world.rowWith(esim.id, { status: 'active' });
    expect(row).toMatchObject({ profile_status: 'enabled', usage_source: 'callback' });
    expect(await world.device.eventTypes(esim.id)).toEqual(['esim.activated', 'esim.usage.threshold']);
    expect(await world.device.usage(esim.id)).toMatchObject({
      ...{ source: 'callback', thresholds_crossed: [50], percent_used: 55 },
    });
  });

  it('send each event once when they are late, doubled and out of order', async () => {
    const esim = await world.issueOne('esim_access');
    const url = world.callbackUrl('esim_access');
    world.esimAccess.control({ callbacks: { url, delayMs: 200, copies: 3, disorder: true } });
    world.change(esim, inUse(0));
    world.change(esim, inUse(0.6));
    world.change(esim, { ...inUse(1), esimStatus: 'USED_UP' });
    await world.rowWith(esim.id, { status: 'depleted' });
    await world.poll(esim);
    expect(await world.device.eventTypes(esim.id)).toEqual([
      'esim.activated',
      'esim.usage.threshold',
      'esim.usage.threshold',
      'esim.usage.threshold',
    ]);
    expect(await world.device.levels(esim.id)).toEqual([50, 80, 100]);
  });

  it('change nothing by what they say: a forged one only causes a look', async () => {
    const esim = await world.issueOne('esim_access');
    const answer = await world.callBack('esim_access', statusCallback(esim, 'USED_EXPIRED'));
    expect(answer.status).toBe(200);
    const row = await eventually('somebody looks', async () => {
      const seen = await world.row(esim.id);
      return seen['read_at'] ? seen : null;
    });
    expect(row).toMatchObject({ status: 'issued', profile_status: 'released', used_bytes: '0' });
    expect(await world.device.eventTypes(esim.id)).toEqual([]);
  });

  it('in a flood cause at most one look a second at an eSIM, and one after the last of them', async () => {
    const esim = await world.issueOne('esim_access');
    const looks = () => world.esimAccess.state().calls['esim/usage/query'] ?? 0;
    const before = looks();
    const startedAt = performance.now();
    for (let round = 0; round < 20; round++) {
      const flood = Array.from({ length: 20 }, () => world.callBack('esim_access', statusCallback(esim)));
      for (const answer of await Promise.all(flood)) expect(answer.status).toBe(200);
    }
    world.change(esim, inUse(0.1));
    await world.callBack('esim_access', statusCallback(esim));
    await world.rowWith(esim.id, { status: 'active' });
    const seconds = (performance.now() - startedAt) / 1_000;
    expect(looks() - before).toBeLessThanOrEqual(Math.ceil(seconds) + 1);
  });

  it('about an eSIM that has ended ask nobody', async () => {
    const esim = await world.issueOne('esim_access');
    await world.database.pool.query(`UPDATE esims SET status = 'expired' WHERE id = $1`, [esim.id]);
    expect((await world.callBack('esim_access', statusCallback(esim))).status).toBe(200);
    expect(await world.row(esim.id)).toMatchObject({ poll_hint_at: null, polled_at: null });
  });
});

describe('callbacks about orders and top-ups', () => {
  it('of Zendit, as it sends them, bring an order forward that nobody would look at', async () => {
    const { order } = await waitingOrder({ webhookUrl: world.callbackUrl('zendit') });
    await issued(order);
    expect(world.zendit.state().webhooksSent).toBeGreaterThan(0);
  });

  it('make an open order due now, whatever they say of it', async () => {
    const { order, reference } = await waitingOrder();
    await issued(order, async () => {
      const answer = await world.callBack('zendit', { transactionId: reference, status: 'FAILED' });
      expect(answer.status).toBe(200);
    });
  });

  it('of another wholesaler leave it alone', async () => {
    const { order, reference } = await waitingOrder();
    const about = { notifyType: 'ORDER_STATUS', content: { transactionId: reference } };
    expect((await world.callBack('esim_access', about)).status).toBe(200);
    expect(await dueInMs('orders', order)).toBeGreaterThan(30_000);
  });

  it('make an open top-up due now', async () => {
    const esim = await world.issueOne('zendit');
    const reference = `po_${randomBytes(8).toString('hex')}`;
    await world.database.pool.query(
      `INSERT INTO topups (id, partner_id, mode, esim_id, iccid, package_id, status, price_amount, currency,
         validity_added_days, provider, provider_reference, upstream_package_id, next_attempt_at,
         accepted_request_id, updated_at)
       SELECT 'top_' || id, partner_id, mode, id, iccid, package_id, 'processing', 100, 'USD', 7, provider, $2,
         'ESIM-FR-7D-1GB', now() + interval '1 hour', 'req_1', now() - interval '1 minute'
       FROM esims WHERE id = $1`,
      [esim.id, reference],
    );
    const before = await dueInMs('topups', `top_${esim.id}`);
    await world.callBack('zendit', { transactionId: reference });
    expect(before).toBeGreaterThan(3_000_000);
    expect(await dueInMs('topups', `top_${esim.id}`)).toBeLessThan(60_000);
  });

  /** An order that its wholesaler is at, and that nobody would look at for a minute. */
  async function waitingOrder(more: ControlBody = {}): Promise<{ order: string; reference: string }> {
    world.zendit.control({ finishAfterMs: 1_500, ...more });
    const { id } = await placeOrder(world.partner, { package_id: await world.package('zendit') });
    const { pool } = world.database;
    const reference = await eventually('the order is upstream', async () => {
      const { rows } = await pool.query<{ provider_reference: string }>(
        `UPDATE orders SET next_attempt_at = now() + interval '1 minute', updated_at = now() - interval '1 minute'
         WHERE id = $1 AND status = 'processing' AND lease_until IS NULL RETURNING provider_reference`,
        [id],
      );
      return rows[0]?.provider_reference;
    });
    return { order: id as string, reference };
  }

  async function issued(order: string, meanwhile = () => Promise.resolve()): Promise<void> {
    await eventually(`order ${order} is issued`, async () => {
      await meanwhile();
      return (await world.partner.get(`/v1/orders/${order}`)).body.data.status === 'issued';
    });
  }

  async function dueInMs(table: 'orders' | 'topups', id: string): Promise<number> {
    const { rows } = await world.database.pool.query<{ ms: number }>(
      `SELECT (extract(epoch FROM next_attempt_at - now()) * 1000)::float8 AS ms FROM ${table} WHERE id = $1`,
      [id],
    );
    return rows[0]!.ms;
  }
});
