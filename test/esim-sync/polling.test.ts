import { randomBytes } from 'node:crypto';
import type { ControlBody } from '../../simulators/zendit/simulator.js';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { BOOK_CHECKS } from '../../src/reconciliation/index.js';
import { eventually } from '../harness/index.js';
import { topupsKnown } from '../harness/known-topups.js';
import { type Json, orderEnded, placeOrder, readFeed } from '../harness/order-steps.js';
import { breachesOf } from '../reconciliation/whole-books.js';
import { placeTopup, topUp, topupEnded } from '../topups/topup-steps.js';
import { inUse, type LiveEsim, LiveWorld } from './live-world.js';

const HOUR_MS = 3_600_000;
/** Matches the eSIMs that Zendit issues in these tests. */
const ZENDIT_TOPUP = 'pkg_z_topup_ESIM-FR-30D-5GB';
const NEEDS_REVIEW_AFTER_MS = 900_000;
/** Only errors. Warnings are for manual review, e.g. an eSIM that the provider canceled by itself, as here. */
const ERROR_CHECKS = BOOK_CHECKS.filter(({ severity }) => severity === 'error');
const LINE_NUMBER = /-\d+$/;

let world: LiveWorld;

beforeAll(async () => {
  world = await LiveWorld.open({ SWEEP_INTERVAL_MS: '200' });
  // The catalog must query top-ups first, or it would take rate-limit slots from the polls that are counted.
  await topupsKnown(world.database);
});
afterEach(() => {
  world.esimAccess.control({ callbacks: { url: null, delayMs: 0, copies: 1, disorder: false } });
  world.zendit.control({ reset: true });
});
afterAll(async () => {
  try {
    await expectBooksInOrder();
  } finally {
    await world.close();
  }
});

/**
 * Checks that each order and top-up was bought once at its provider and nothing else was bought. Every invariant of our
 * books must hold: ledger sum 0, held = active holds, one charge and one event per result.
 */
async function expectBooksInOrder(): Promise<void> {
  const { pool } = world.database;
  for (const check of ERROR_CHECKS)
    expect(await breachesOf(pool, check, NEEDS_REVIEW_AFTER_MS), check.check).toEqual([]);
  const { rows } = await pool.query<{ reference: string; bought: number }>(
    `SELECT provider_reference AS reference, quantity AS bought FROM orders WHERE mode = 'live'
     UNION ALL SELECT provider_reference, 1 FROM topups WHERE mode = 'live'`,
  );
  expect(rows.length, 'something was sold').toBeGreaterThan(0);
  expect(purchasesUpstream()).toEqual(
    Object.fromEntries(rows.map(({ reference, bought }) => [reference, bought])),
  );
  expect(world.esimAccess.state().repeated, 'orders sent to eSIM Access again').toEqual([]);
  expect(world.zendit.state().duplicatePosts, 'purchases sent to Zendit again').toBe(0);
}

/** The purchases of both providers by our reference: eSIMs, or one top-up. */
function purchasesUpstream(): Record<string, number> {
  const { purchases, topups } = world.esimAccess.state();
  const sold: Record<string, number> = { ...purchases, ...topups };
  for (const id of Object.keys(world.zendit.state().purchases)) {
    const reference = id.replace(LINE_NUMBER, '');
    sold[reference] = (sold[reference] ?? 0) + 1;
  }
  return sold;
}

/** Milliseconds until the next poll. */
async function nextPollInMs(esim: LiveEsim): Promise<number | null> {
  const { rows } = await world.database.pool.query<{ ms: number | null }>(
    'SELECT (extract(epoch FROM next_poll_at - now()) * 1000)::float8 AS ms FROM esims WHERE id = $1',
    [esim.id],
  );
  return rows[0]!.ms;
}

/** How many polls of the eSIM have started. */
async function fenceOf(esim: LiveEsim): Promise<number> {
  return Number((await world.row(esim.id))['poll_fence']);
}

describe('a poll', () => {
  it('detects changes at eSIM Access that no callback reported', async () => {
    const esim = await world.issueOne('esim_access');
    world.change(esim, inUse(0.81));
    await world.poll(esim);
    expect(await world.row(esim.id)).toMatchObject({ status: 'active', usage_source: 'poll' });
    expect(await world.device.levels(esim.id)).toEqual([50, 80]);
    expect(await world.device.usage(esim.id)).toMatchObject({ source: 'poll', percent_used: 81 });
  });

  it('stores the other readings of a batch when one cannot be stored (D43)', async () => {
    const [good, poisoned, other] = await world.issue('esim_access', 3);
    const before = await fenceOf(good!);
    const { pool } = world.database;
    await pool.query(
      `ALTER TABLE esims ADD CONSTRAINT poisoned CHECK (id <> '${poisoned!.id}' OR used_bytes = 0)`,
    );
    try {
      for (const esim of [good!, poisoned!, other!]) world.change(esim, inUse(0.6));
      await pool.query('UPDATE esims SET next_poll_at = now() WHERE id = ANY($1)', [
        [good!, poisoned!, other!].map(({ id }) => id),
      ]);
      await world.rowWith(good!.id, { status: 'active', usage_source: 'poll' });
      await world.rowWith(other!.id, { status: 'active', usage_source: 'poll' });
      expect(await fenceOf(good!), 'one claim was enough').toBe(before + 1);
      expect(await world.row(poisoned!.id)).toMatchObject({ used_bytes: '0', poll_lease_until: null });
    } finally {
      await pool.query('ALTER TABLE esims DROP CONSTRAINT poisoned');
    }
  });

  it('detects the use of an eSIM at Zendit, and its start and end as reported', async () => {
    const esim = await world.issueOne('zendit');
    const startAt = new Date(Date.now() - 2 * HOUR_MS).toISOString();
    world.zendit.control({ plans: { [esim.iccid]: { usedGB: 0.5, startAt, firstInstalledAt: startAt } } });
    await world.poll(esim);
    const read = await world.device.read(esim.id);
    expect(read).toMatchObject({ status: 'active', profile_status: 'installed', activated_at: startAt });
    expect(Date.parse(read['expires_at'] as string)).toBe(Date.parse(startAt) + 168 * HOUR_MS);
    expect(await world.device.eventTypes(esim.id)).toEqual(['esim.activated', 'esim.usage.threshold']);
    expect(Date.parse((await world.device.usage(esim.id))['as_of'] as string)).toBeGreaterThan(
      Date.now() - 60_000,
    );
  });

  it('skips one eSIM that Zendit cannot read, reads its neighbors, and retries that one hours later', async () => {
    const [before, broken, after] = await world.issue('zendit', 3);
    const startAt = new Date(Date.now() - 2 * HOUR_MS).toISOString();
    const plan = { usedGB: 0.1, startAt };
    world.zendit.control({
      plans: { [before!.iccid]: plan, [broken!.iccid]: { answer: 500 }, [after!.iccid]: plan },
    });
    await world.database.pool.query(
      `UPDATE esims SET created_at = created_at - interval '3 hours' WHERE id = ANY($1)`,
      [[before!.id, broken!.id, after!.id]],
    );
    await world.poll(before!, broken!, after!);
    for (const esim of [before!, after!])
      expect(await world.row(esim.id)).toMatchObject({ status: 'active', poll_fence: '1' });
    expect(await world.row(broken!.id)).toMatchObject({ status: 'issued', read_at: null, poll_fence: '1' });
    expect(await nextPollInMs(broken!)).toBeLessThanOrEqual(6 * HOUR_MS);
    expect(await nextPollInMs(broken!)).toBeGreaterThan(HOUR_MS / 4);
  });

  it('reports a revocation, and skips an eSIM whose order is being canceled', async () => {
    const [gone, leaving] = [await world.issueOne('esim_access'), await world.issueOne('esim_access')];
    const { pool } = world.database;
    await pool.query(`UPDATE orders SET status = 'canceling', next_attempt_at = NULL WHERE id = $1`, [
      leaving.orderId,
    ]);
    for (const esim of [gone, leaving]) world.change(esim, { esimStatus: 'CANCEL' });
    await world.poll(gone, leaving);
    expect(await world.row(gone.id)).toMatchObject({ status: 'canceled', next_poll_at: null });
    expect(await world.row(leaving.id)).toMatchObject({ status: 'issued' });
    expect(await world.device.events(gone.id)).toMatchObject([{ type: 'esim.revoked' }]);
    expect(await world.device.events(leaving.id)).toEqual([]);
  });

  it('is scheduled by the plan, and never for an eSIM that has ended here', async () => {
    const esim = await world.issueOne('esim_access');
    expect(await nextPollInMs(esim)).toBeGreaterThan(60_000);
    await world.poll(esim);
    expect(await nextPollInMs(esim)).toBeGreaterThan(25 * 60_000);
    await world.database.pool.query(
      `UPDATE esims SET expires_at = now() - interval '1 second', next_poll_at = now() + interval '1 minute'
       WHERE id = $1`,
      [esim.id],
    );
    await world.rowWith(esim.id, { status: 'expired' });
    expect(await world.device.eventTypes(esim.id)).toEqual(['esim.expired']);
    const { polled_at: polledAt } = await world.row(esim.id);
    const other = await world.issueOne('esim_access');
    await world.database.pool.query('UPDATE esims SET next_poll_at = now() WHERE id = $1', [esim.id]);
    await world.poll(other);
    expect((await world.row(esim.id))['polled_at']).toEqual(polledAt);
  });

  it('expires an eSIM by our own clock even while its provider is down', async () => {
    const esim = await world.issueOne('esim_access');
    world.change(esim, inUse(0.1));
    await world.poll(esim);
    world.esimAccess.control({ faults: { garbage: 1_000_000, garbageKind: 'http_500' } });
    await world.database.pool.query(
      `UPDATE esims SET expires_at = now(), next_poll_at = now() WHERE id = $1`,
      [esim.id],
    );
    await world.rowWith(esim.id, { status: 'expired' });
    world.esimAccess.control({ faults: { garbage: 0 } });
    expect(await world.device.eventTypes(esim.id)).toEqual(['esim.activated', 'esim.expired']);
  });
});

it('waits while the provider refuses calls, and resumes when it accepts them', async () => {
  const esim = await world.issueOne('zendit');
  world.zendit.control({ unavailable: 1 });
  const startAt = new Date(Date.now() - 2 * HOUR_MS).toISOString();
  world.zendit.control({ plans: { [esim.iccid]: { usedGB: 0.1, startAt } } });
  await world.database.pool.query('UPDATE esims SET next_poll_at = now() WHERE id = $1', [esim.id]);
  await eventually('it is read', async () => (await world.row(esim.id))['status'] === 'active');
});

/** A callback of eSIM Access about the eSIM, true or not. */
function statusCallback(esim: Pick<LiveEsim, 'upstreamId'>, esimStatus = 'IN_USE'): object {
  const content = { esimTranNo: esim.upstreamId, iccid: '8985', esimStatus, smdpStatus: 'ENABLED' };
  return { notifyType: 'ESIM_STATUS', notifyId: randomBytes(8).toString('hex'), content };
}

describe('a callback of eSIM Access', () => {
  it('triggers a reading, which updates the state, the usage and the events', async () => {
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

  it('sends each event once when callbacks are late, duplicated and out of order', async () => {
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

  it('changes nothing by its content: a forged callback only triggers a poll', async () => {
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

  it('triggers at most one poll per second and eSIM in a flood, and one after the last callback', async () => {
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
});

describe('a callback about an order or a top-up', () => {
  it('advances an order that would otherwise wait, when Zendit sends it in its real form', async () => {
    const { order } = await waitingOrder({ webhookUrl: world.callbackUrl('zendit') });
    await issued(order);
    expect(world.zendit.state().webhooksSent).toBeGreaterThan(0);
  });

  it('leads to one purchase and one event each when Zendit sends it late, duplicated and out of order', async () => {
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
    // Four purchases with five final callbacks each, followed by one with an earlier status.
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

  it('makes an open order due now, whatever it claims', async () => {
    const { order, reference } = await waitingOrder();
    await issued(order, async () => {
      const answer = await world.callBack('zendit', { transactionId: reference, status: 'FAILED' });
      expect(answer.status).toBe(200);
    });
  });

  it('is ignored when it comes from another provider', async () => {
    const { order, reference } = await waitingOrder();
    const about = { notifyType: 'ORDER_STATUS', content: { transactionId: reference } };
    expect((await world.callBack('esim_access', about)).status).toBe(200);
    expect(await dueInMs('orders', order)).toBeGreaterThan(30_000);
  });

  it('makes an open top-up due now', async () => {
    const esim = await world.issueOne('zendit');
    // Only the callback below can make it due within an hour.
    world.zendit.control({ finishAfterMs: 5_000 });
    const { id } = await placeTopup(world.partner, { esim_id: esim.id, package_id: ZENDIT_TOPUP });
    const reference = await putOff('topups', id as string, '1 hour');
    await world.callBack('zendit', { transactionId: reference });
    expect(await topupEnded(world.partner, id as string)).toMatchObject({ status: 'completed' });
  });

  /** Counts of purchases that arrived at Zendit and of its callbacks that got a 200. */
  function zenditCounts(): { posts: number; callbacks: number } {
    const { calls, webhooksSent } = world.zendit.state();
    return { posts: calls['POST /esim/purchases'] ?? 0, callbacks: webhooksSent };
  }

  /** Zendit's ids of the four purchases for an order of three and a top-up. */
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

  /** Places an order that its provider is processing and that is not due for a minute. */
  async function waitingOrder(more: ControlBody = {}): Promise<{ order: string; reference: string }> {
    world.zendit.control({ finishAfterMs: 5_000, ...more });
    const { id } = await placeOrder(world.partner, { package_id: await world.package('zendit') });
    const reference = await putOff('orders', id as string, '1 minute');
    return { order: id as string, reference };
  }

  /**
   * Waits until the provider has the purchase and no worker is processing it, postpones it, and returns its reference.
   */
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

  /** Milliseconds until it is due, or null if it is never due. */
  async function dueInMs(table: 'orders' | 'topups', id: string): Promise<number | null> {
    const { rows } = await world.database.pool.query<{ ms: number | null }>(
      `SELECT (extract(epoch FROM next_attempt_at - now()) * 1000)::float8 AS ms FROM ${table} WHERE id = $1`,
      [id],
    );
    return rows[0]!.ms;
  }
});
