import { randomBytes } from 'node:crypto';
import type { ControlBody } from '../../simulators/zendit/simulator.js';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { eventually } from '../harness/index.js';
import { type Json, orderEnded, placeOrder, readFeed } from '../harness/order-steps.js';
import { placeTopup, topUp, topupEnded } from '../topups/topup-steps.js';
import { expectBooksInOrder } from './books.js';
import { inUse, type LiveEsim, LiveWorld } from './live-world.js';

/** Fits the eSIMs that Zendit issues here. */
const ZENDIT_TOPUP = 'pkg_z_topup_ESIM-FR-30D-5GB';
let world: LiveWorld;

beforeAll(async () => {
  world = await LiveWorld.open();
});
afterAll(async () => {
  try {
    await expectBooksInOrder(world);
  } finally {
    await world.close();
  }
});
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

  it('of Zendit, late, doubled and out of order, lead to one purchase each and to each event once', async () => {
    const copies = { webhookCopies: 5, webhookDisordered: true };
    const webhookUrl = world.callbackUrl('zendit');
    world.zendit.control({ finishAfterMs: 300, webhookUrl, webhookDelayMs: 200, ...copies });
    const before = zenditCounts();
    const { id } = await placeOrder(world.partner, {
      package_id: await world.package('zendit'),
      quantity: 3,
    });
    const order = await orderEnded(world.partner, id as string);
    expect(order).toMatchObject({ status: 'issued', quantity_issued: 3 });
    const esims = order['esims'] as Json[];
    expect(new Set(esims.map(({ iccid }) => iccid as string)).size).toBe(3);
    const topup = await topUp(world.partner, esims[0]!['esim_id'] as string, ZENDIT_TOPUP);
    expect(topup).toMatchObject({ status: 'completed' });
    // Of each of the four purchases five final ones, and one of an earlier status after them.
    await eventually('all callbacks were taken', () => zenditCounts().callbacks - before.callbacks === 24);

    for (const transactionId of await purchasesOf(id as string, topup['id'] as string))
      for (const status of ['DONE', 'IN_PROGRESS', 'FAILED', 'DONE']) {
        const late = await world.callBack('zendit', { transactionId, status });
        expect(late.status).toBe(200);
        expect(await dueInMs('orders', id as string)).toBeNull();
        expect(await dueInMs('topups', topup['id'] as string)).toBeNull();
      }
    expect((await world.partner.get(`/v1/orders/${id}`)).body.data).toEqual(order);
    expect((await world.partner.get(`/v1/topups/${topup['id']}`)).body.data).toEqual(topup);
    expect(zenditCounts().posts - before.posts).toBe(4);
    const events = (await readFeed(world.partner)).filter(({ data }) => (data as Json)['order_id'] === id);
    expect(events.map(({ type }) => type as string)).toEqual(['order.issued', 'order.topup.completed']);
  });

  it('make an open order due now, whatever they say of it', async () => {
    const { order, reference } = await waitingOrder();
    await issued(order, async () => {
      const answer = await world.callBack('zendit', { transactionId: reference, status: 'FAILED' });
      expect(answer.status).toBe(200);
    });
  });

  it('of another provider leave it alone', async () => {
    const { order, reference } = await waitingOrder();
    const about = { notifyType: 'ORDER_STATUS', content: { transactionId: reference } };
    expect((await world.callBack('esim_access', about)).status).toBe(200);
    expect(await dueInMs('orders', order)).toBeGreaterThan(30_000);
  });

  it('make an open top-up due now', async () => {
    const esim = await world.issueOne('zendit');
    // Nothing but the callback below can bring it forward by an hour.
    world.zendit.control({ finishAfterMs: 5_000 });
    const { id } = await placeTopup(world.partner, { esim_id: esim.id, package_id: ZENDIT_TOPUP });
    const reference = await putOff('topups', id as string, '1 hour');
    await world.callBack('zendit', { transactionId: reference });
    expect(await topupEnded(world.partner, id as string)).toMatchObject({ status: 'completed' });
  });

  /** Purchases that arrived at Zendit, and callbacks of it that were answered with 200. */
  function zenditCounts(): { posts: number; callbacks: number } {
    const { calls, webhooksSent } = world.zendit.state();
    return { posts: calls['POST /esim/purchases'] ?? 0, callbacks: webhooksSent };
  }

  /** What Zendit calls the four purchases of an order of three and a top-up. */
  async function purchasesOf(order: string, topup: string): Promise<readonly string[]> {
    const { rows } = await world.database.pool.query<{ reference: string }>(
      `SELECT provider_reference AS reference FROM orders WHERE id = $1
       UNION ALL SELECT provider_reference FROM topups WHERE id = $2`,
      [order, topup],
    );
    const references = rows.map(({ reference }) => reference);
    const ids = Object.keys(world.zendit.state().purchases);
    const found = ids.filter((id) => references.some((reference) => id.startsWith(reference)));
    expect(found).toHaveLength(4);
    return found;
  }

  /** An order that its provider is at, and that nobody would look at for a minute. */
  async function waitingOrder(more: ControlBody = {}): Promise<{ order: string; reference: string }> {
    world.zendit.control({ finishAfterMs: 5_000, ...more });
    const { id } = await placeOrder(world.partner, { package_id: await world.package('zendit') });
    const reference = await putOff('orders', id as string, '1 minute');
    return { order: id as string, reference };
  }

  /** Waits until the provider has it and no worker is at it; answers the reference. */
  async function putOff(table: 'orders' | 'topups', id: string, by: string): Promise<string> {
    return eventually(`${id} is upstream`, async () => {
      const { rows } = await world.database.pool.query<{ provider_reference: string }>(
        `UPDATE ${table} SET next_attempt_at = now() + $2::interval, updated_at = now() - interval '1 minute'
         WHERE id = $1 AND status = 'processing' AND lease_until IS NULL AND upstream_placed_at IS NOT NULL RETURNING provider_reference`,
        [id, by],
      );
      return rows[0]?.provider_reference;
    });
  }

  async function issued(order: string, meanwhile = () => Promise.resolve()): Promise<void> {
    await eventually(`order ${order} is issued`, async () => {
      await meanwhile();
      return (await world.partner.get(`/v1/orders/${order}`)).body.data.status === 'issued';
    });
  }

  /** Null for what nobody will look at. */
  async function dueInMs(table: 'orders' | 'topups', id: string): Promise<number | null> {
    const { rows } = await world.database.pool.query<{ ms: number | null }>(
      `SELECT (extract(epoch FROM next_attempt_at - now()) * 1000)::float8 AS ms FROM ${table} WHERE id = $1`,
      [id],
    );
    return rows[0]!.ms;
  }
});
