import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { eventually } from '../harness/index.js';
import { topupsKnown } from '../harness/known-topups.js';
import { expectBooksInOrder } from './books.js';
import { inUse, type LiveEsim, LiveWorld } from './live-world.js';

const HOUR_MS = 3_600_000;
let world: LiveWorld;

beforeAll(async () => {
  world = await LiveWorld.open();
  // The catalogue has asked for them, which would take slots of the pace from the looks that are counted.
  await topupsKnown(world.database);
});
afterAll(async () => {
  try {
    await expectBooksInOrder(world);
  } finally {
    await world.close();
  }
});

/** How far away the next poll is, in milliseconds. */
async function nextPollInMs(esim: LiveEsim): Promise<number | null> {
  const { rows } = await world.database.pool.query<{ ms: number | null }>(
    'SELECT (extract(epoch FROM next_poll_at - now()) * 1000)::float8 AS ms FROM esims WHERE id = $1',
    [esim.id],
  );
  return rows[0]!.ms;
}

/** How many looks at the eSIM were begun. */
async function fenceOf(esim: LiveEsim): Promise<number> {
  return Number((await world.row(esim.id))['poll_fence']);
}

describe('polls', () => {
  it('find at eSIM Access what no callback said', async () => {
    const esim = await world.issueOne('esim_access');
    world.change(esim, inUse(0.81));
    await world.poll(esim);
    expect(await world.row(esim.id)).toMatchObject({ status: 'active', usage_source: 'poll' });
    expect(await world.device.levels(esim.id)).toEqual([50, 80]);
    expect(await world.device.usage(esim.id)).toMatchObject({ source: 'poll', percent_used: 81 });
  });

  it('store the readings of a batch but for the one that cannot be stored (D43)', async () => {
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

  it('find at Zendit the use of an eSIM, and its start and end as told', async () => {
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

  it('tell at Zendit that a plan has left the list with its data at the second look, and never of one not in use', async () => {
    const [spent, fresh] = await world.issue('zendit', 2);
    const startAt = new Date(Date.now() - 2 * HOUR_MS).toISOString();
    const inUseAt = { usedGB: 0.9, startAt, firstInstalledAt: startAt };
    world.zendit.control({ plans: { [spent!.iccid]: inUseAt } });
    await world.poll(spent!, fresh!);
    world.zendit.control({
      plans: Object.fromEntries([spent!, fresh!].map(({ iccid }) => [iccid, { gone: true }])),
    });
    await world.poll(spent!, fresh!);
    expect(await world.row(spent!.id)).toMatchObject({ status: 'active' });
    const { pool } = world.database;
    await eventually('the eSIM is depleted', async () => {
      const before = await fenceOf(spent!);
      // As if the first look in vain had been half an hour ago, and the reading before it a while earlier.
      await pool.query(
        `UPDATE esims SET polled_at = polled_at - interval '30 minutes', read_at = read_at - interval '1 hour'
         WHERE id = $1`,
        [spent!.id],
      );
      await world.poll(spent!, fresh!);
      const isDepleted = (await world.row(spent!.id))['status'] === 'depleted';
      // Only a look that came to nothing, as a call took too long on a busy machine, makes the first one in vain count no more.
      if (!isDepleted) expect(await fenceOf(spent!), 'looks begun').toBeGreaterThan(before + 1);
      return isDepleted;
    });
    expect(await world.device.levels(spent!.id)).toEqual([50, 80, 100]);
    expect(await world.row(fresh!.id)).toMatchObject({ status: 'issued' });
  });

  it('at Zendit lose one eSIM that it cannot answer, not its neighbours, and ask for that one again in hours', async () => {
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

  it('announce two levels that frozen usage jumps over at either provider, each once and ascending', async () => {
    const startAt = new Date(Date.now() - 2 * HOUR_MS).toISOString();
    const [theirs, zendits] = [await world.issueOne('esim_access'), await world.issueOne('zendit')];
    const both = [theirs, zendits];
    const use = (usedGB: number) => {
      world.change(theirs, inUse(usedGB));
      const plan = { usedGB, startAt, firstInstalledAt: startAt };
      world.zendit.control({ plans: { [zendits.iccid]: plan } });
    };
    const levels = () => Promise.all(both.map(({ id }) => world.device.levels(id)));
    use(0.2);
    for (let i = 0; i < 3; i++) await world.poll(...both);
    expect(await levels()).toEqual([[], []]);
    use(0.85);
    for (let i = 0; i < 3; i++) await world.poll(...both);
    expect(await levels()).toEqual([
      [50, 80],
      [50, 80],
    ]);
    use(0.3);
    await world.poll(...both);
    for (const { id } of both) {
      expect(await world.device.usage(id)).toMatchObject({ percent_used: 85 });
      expect(await world.device.events(id)).toHaveLength(3);
    }
  });

  it('follow suspended and back, and an end provider, and then stop', async () => {
    const esim = await world.issueOne('esim_access');
    world.change(esim, inUse(0.1));
    await world.poll(esim);
    world.change(esim, { esimStatus: 'SUSPENDED' });
    await world.poll(esim);
    expect(await world.row(esim.id)).toMatchObject({ status: 'suspended' });
    world.change(esim, { esimStatus: 'IN_USE' });
    await world.poll(esim);
    expect(await world.row(esim.id)).toMatchObject({ status: 'active' });
    world.change(esim, { esimStatus: 'USED_EXPIRED' });
    await world.poll(esim);
    expect(await world.row(esim.id)).toMatchObject({ status: 'expired', next_poll_at: null });
    expect(await world.device.eventTypes(esim.id)).toEqual(['esim.activated', 'esim.expired']);
  });

  it('cancel without an event, and leave one alone whose order is being canceled', async () => {
    const [gone, leaving] = [await world.issueOne('esim_access'), await world.issueOne('esim_access')];
    const { pool } = world.database;
    await pool.query(`UPDATE orders SET status = 'canceling', next_attempt_at = NULL WHERE id = $1`, [
      leaving.orderId,
    ]);
    for (const esim of [gone, leaving]) world.change(esim, { esimStatus: 'CANCEL' });
    await world.poll(gone, leaving);
    expect(await world.row(gone.id)).toMatchObject({ status: 'canceled', next_poll_at: null });
    expect(await world.row(leaving.id)).toMatchObject({ status: 'issued' });
    expect(await world.device.eventTypes(gone.id)).toEqual([]);
  });

  it('come next by the plan, and never for what has ended here', async () => {
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

  it('end an eSIM by our own clock also while its provider is away', async () => {
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

  it('read neighbours in time of issue together', async () => {
    const esims = await world.issue('esim_access', 15);
    await eventually('the circuit is closed again', async () => {
      await world.poll(esims[0]!);
      return (await world.row(esims[0]!.id))['read_at'] !== null;
    });
    const queries = () => world.esimAccess.state().calls['esim/query'] ?? 0;
    const before = queries();
    await world.poll(...esims);
    for (const esim of esims) expect((await world.row(esim.id))['read_at']).not.toBeNull();
    expect(queries() - before).toBeLessThanOrEqual(3);
  });

  it('are not done twice by two workers, and each event is sent once', async () => {
    const second = await world.startWorker();
    const esims = await world.issue('zendit', 12);
    const startAt = new Date(Date.now() - 2 * HOUR_MS).toISOString();
    world.zendit.control({
      plans: Object.fromEntries(esims.map(({ iccid }) => [iccid, { usedGB: 0.55, startAt }])),
    });
    const fences = async () => {
      const rows = await Promise.all(esims.map((esim) => world.row(esim.id)));
      return rows.map((row) => Number(row['poll_fence']));
    };
    expect(new Set(await fences())).toEqual(new Set([0]));
    await world.poll(...esims);
    expect(new Set(await fences())).toEqual(new Set([1]));
    for (const esim of esims)
      expect(await world.device.eventTypes(esim.id)).toEqual(['esim.activated', 'esim.usage.threshold']);
    await second.stop();
  });

  it('of a worker that died are done by another one', async () => {
    const esim = await world.issueOne('zendit');
    const { pool } = world.database;
    await pool.query(
      `UPDATE esims SET next_poll_at = now(), poll_fence = 7, polled_at = now(),
         poll_lease_until = now() + interval '1 second' WHERE id = $1`,
      [esim.id],
    );
    const row = await eventually('the lease has lapsed', async () => {
      const seen = await world.row(esim.id);
      return seen['read_at'] ? seen : null;
    });
    expect(row).toMatchObject({ poll_fence: '8', poll_lease_until: null });
  });
});

it('wait while the provider takes no calls, and come when it does', async () => {
  const esim = await world.issueOne('zendit');
  world.zendit.control({ unavailable: 1 });
  const startAt = new Date(Date.now() - 2 * HOUR_MS).toISOString();
  world.zendit.control({ plans: { [esim.iccid]: { usedGB: 0.1, startAt } } });
  await world.database.pool.query('UPDATE esims SET next_poll_at = now() WHERE id = $1', [esim.id]);
  await eventually('it is read', async () => (await world.row(esim.id))['status'] === 'active');
});
