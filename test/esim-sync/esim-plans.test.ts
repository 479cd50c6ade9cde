import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { topupsKnown } from '../harness/known-topups.js';
import type { Json } from '../harness/order-steps.js';
import { topUp } from '../topups/topup-steps.js';
import { inUse, type LiveEsim, LiveWorld } from './live-world.js';

const GB = 1_000_000_000;
const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;
const WEEK_MS = 7 * DAY_MS;
/** 5 GB for 30 days, for the eSIMs of 1 GB for 7 days that Zendit issues here. */
const ZENDIT_TOPUP = 'pkg_z_topup_ESIM-FR-30D-5GB';
/** The offer of the eSIM itself, as a top-up. */
const SAME_OFFER = 'pkg_z_topup_ESIM-FR-7D-1GB';

let world: LiveWorld;

beforeAll(async () => {
  world = await LiveWorld.open({ SWEEP_INTERVAL_MS: '200' });
  await topupsKnown(world.database);
});
afterEach(() => {
  world.zendit.control({ reset: true });
  world.esimAccess.control({ faults: { msisdn: '' } });
});
afterAll(() => world.close());

async function plansOf(esim: LiveEsim): Promise<{ pooled: boolean; plans: Json[] }> {
  const answer = await world.partner.get(`/v1/esims/${esim.id}/plans`);
  expect(answer.status, answer.text).toBe(200);
  const { data, pooled, has_more, next_cursor } = answer.body;
  expect({ has_more, next_cursor }).toEqual({ has_more: false, next_cursor: null });
  return { pooled: pooled as boolean, plans: data as Json[] };
}

function sum(plans: readonly Json[], field: string): number {
  return plans.reduce((total, plan) => total + (plan[field] as number), 0);
}

function at(ms: number): string {
  return new Date(ms).toISOString();
}

/** A Zendit eSIM of 1 GB with a queued top-up of 5 GB, in use since `startMs`. */
async function queued(startMs: number, usedGB: number): Promise<{ esim: LiveEsim; topupId: string }> {
  const esim = await world.issueOne('zendit');
  world.zendit.control({ plans: { [esim.iccid]: { usedGB, startAt: at(startMs) } } });
  await world.poll(esim);
  const { id, status } = await topUp(world.partner, esim.id, ZENDIT_TOPUP);
  expect(status).toBe('completed');
  await world.poll(esim);
  // Soon after a top-up, a smaller total may be an older reading.
  await world.database.pool.query(
    `UPDATE esims SET topped_up_at = topped_up_at - interval '1 hour' WHERE id = $1`,
    [esim.id],
  );
  return { esim, topupId: id as string };
}

describe('the plans of a Zendit eSIM', () => {
  it('show a used-up plan in use and a queued one, each with its own data, and their sums as usage', async () => {
    const startMs = Date.now() - HOUR_MS;
    const { esim, topupId } = await queued(startMs, 1);
    const { pooled, plans } = await plansOf(esim);
    expect(pooled).toBe(false);
    expect(plans).toMatchObject([
      {
        ...{ source: 'order', order_id: esim.orderId, topup_id: null, package_id: 'pkg_z_ESIM-FR-7D-1GB' },
        ...{ status: 'active', total_bytes: GB, used_bytes: GB, remaining_bytes: 0 },
        ...{ starts_at: at(startMs), ends_at: at(startMs + WEEK_MS) },
      },
      {
        ...{ source: 'topup', order_id: null, topup_id: topupId, package_id: ZENDIT_TOPUP },
        ...{ status: 'queued', total_bytes: 5 * GB, used_bytes: 0, remaining_bytes: 5 * GB },
        ...{ starts_at: null, ends_at: null },
      },
    ]);
    const usage = await world.device.usage(esim.id);
    for (const field of ['total_bytes', 'used_bytes', 'remaining_bytes'])
      expect(usage[field], field).toBe(sum(plans, field));
    expect(usage).toMatchObject({ current_plan_remaining_bytes: 0, thresholds_crossed: [] });
    expect(usage['percent_used']).toBeCloseTo(16.66);
    // The end of the plan in use is not the end of the eSIM.
    expect(await world.device.read(esim.id)).toMatchObject({ status: 'active', expires_at: null });
  });

  it('come from our own records: reading them calls no wholesaler', async () => {
    const { esim } = await queued(Date.now() - HOUR_MS, 0.5);
    const before = world.zendit.state().calls;
    await plansOf(esim);
    await world.device.usage(esim.id);
    expect(world.zendit.state().calls).toEqual(before);
  });

  it('keep the first plan as ended when the queued one starts by time, and end with the second', async () => {
    const startMs = Date.now() - WEEK_MS + HOUR_MS;
    const { esim, topupId } = await queued(startMs, 0.75);
    expect(await world.device.usage(esim.id)).toMatchObject({ current_plan_remaining_bytes: 0.25 * GB });
    const endMs = Date.now() - 1_000;
    const plan = { usedGB: 1, startAt: at(startMs), endAt: at(endMs) };
    world.zendit.control({
      plans: { [esim.iccid]: plan },
      queuedPlansStart: 'end',
      endedPlansLeave: true,
    });
    await world.poll(esim);
    const { plans } = await plansOf(esim);
    expect(plans).toMatchObject([
      { source: 'order', status: 'ended', total_bytes: GB, used_bytes: 0.75 * GB, remaining_bytes: 0 },
      { topup_id: topupId, status: 'active', remaining_bytes: 5 * GB, starts_at: at(endMs) },
    ]);
    expect(Date.parse(plans[0]!['as_of'])).toBeLessThan(Date.parse(plans[1]!['as_of']));
    // Data that was left in the ended plan is lost.
    expect(await world.device.usage(esim.id)).toMatchObject({
      ...{ total_bytes: 6 * GB, used_bytes: GB, remaining_bytes: 5 * GB },
      current_plan_remaining_bytes: 5 * GB,
    });
    expect(await world.device.read(esim.id)).toMatchObject({ expires_at: at(endMs + 30 * DAY_MS) });
  });

  it('show the queued plan in use when it starts because the first one is used up', async () => {
    const startMs = Date.now() - HOUR_MS;
    const { esim, topupId } = await queued(startMs, 0.9);
    const usedUpAt = at(Date.now() - 1_000);
    const plan = { usedGB: 1.5, startAt: at(startMs), usedUpAt };
    world.zendit.control({
      plans: { [esim.iccid]: plan },
      queuedPlansStart: 'exhaustion',
      endedPlansLeave: true,
    });
    await world.poll(esim);
    expect((await plansOf(esim)).plans).toMatchObject([
      { source: 'order', status: 'ended', used_bytes: 0.9 * GB, remaining_bytes: 0 },
      { topup_id: topupId, status: 'active', used_bytes: 0.5 * GB, starts_at: usedUpAt },
    ]);
    expect(await world.device.usage(esim.id)).toMatchObject({
      ...{ used_bytes: 1.5 * GB, remaining_bytes: 4.5 * GB, current_plan_remaining_bytes: 4.5 * GB },
    });
  });

  it('do not let our clock end an eSIM while one of them is queued', async () => {
    const { esim } = await queued(Date.now() - HOUR_MS, 1);
    const { pool } = world.database;
    const other = await world.issueOne('zendit');
    const past = `UPDATE esims SET expires_at = now() - interval '1 hour' WHERE id = ANY ($1)`;
    await pool.query(past, [[esim.id, other.id]]);
    await world.rowWith(other.id, { status: 'expired' });
    expect(await world.device.read(esim.id)).toMatchObject({ status: 'active', expires_at: null });
    world.zendit.control({ plans: { [esim.iccid]: { gone: true } } });
    await world.poll(esim);
    expect(await world.device.read(esim.id)).toMatchObject({ status: 'expired' });
    const { plans } = await plansOf(esim);
    expect(plans.map(({ status }) => status as string)).toEqual(['ended', 'ended']);
    expect(await world.device.usage(esim.id)).toMatchObject({ current_plan_remaining_bytes: 0 });
  });

  it('are unknown before the first reading, and name no purchase that could be another one', async () => {
    const esim = await world.issueOne('zendit');
    expect(await plansOf(esim)).toMatchObject({
      pooled: false,
      plans: [{ order_id: esim.orderId, status: 'unknown', total_bytes: null, ends_at: null }],
    });
    expect(await world.device.usage(esim.id)).toMatchObject({ current_plan_remaining_bytes: null });
    // Both purchases are of the same offer, and only one of their plans is ever listed.
    const startAt = at(Date.now() - HOUR_MS);
    world.zendit.control({
      plans: { [esim.iccid]: { usedGB: 1, startAt } },
      endedPlansLeave: true,
    });
    // A top-up is followed by a poll, which must not see both plans.
    await topUp(world.partner, esim.id, SAME_OFFER);
    await world.poll(esim);
    const { plans } = await plansOf(esim);
    expect(plans).toMatchObject([
      { source: null, order_id: null, topup_id: null, package_id: null, status: 'queued', total_bytes: GB },
      { source: null, order_id: null, topup_id: null, package_id: null, status: 'unknown' },
    ]);
    expect(new Set(plans.map(({ id }) => id as string)).size).toBe(2);
  });

  it('raise the version only when one of them changes', async () => {
    const { esim } = await queued(Date.now() - HOUR_MS, 0.5);
    const { plans: before, version } = await world.row(esim.id);
    world.zendit.control({
      plans: { [esim.iccid]: { answer: 500 } },
    });
    await world.poll(esim);
    expect(await world.row(esim.id)).toMatchObject({ plans: before, version });
  });
});

describe('the plans of an eSIM Access eSIM', () => {
  it('are one pot: a plan per purchase without bytes, and a total equal to the sum of the purchases', async () => {
    const esim = await world.issueOne('esim_access');
    expect(await plansOf(esim)).toMatchObject({ pooled: true, plans: [{ status: 'queued' }] });
    world.change(esim, inUse(0.3));
    await world.poll(esim);
    const { data: fitting } = (await world.partner.get(`/v1/esims/${esim.id}/topup-packages`)).body;
    const topups = [fitting[0], fitting[0], fitting.at(-1)].filter(
      (item: Json) => item['data_bytes'] !== null,
    );
    const bought: Json[] = [];
    for (const item of topups) bought.push(await topUp(world.partner, esim.id, item['id'] as string));
    expect(bought.map(({ status }) => status as string)).toEqual(bought.map(() => 'completed'));
    await world.poll(esim);
    const { pooled, plans } = await plansOf(esim);
    const { activated_at: starts_at, expires_at: ends_at } = await world.device.read(esim.id);
    const noBytes = { total_bytes: null, used_bytes: null, remaining_bytes: null };
    expect(pooled).toBe(true);
    expect(plans).toMatchObject([
      { source: 'order', order_id: esim.orderId, status: 'active', starts_at, ends_at, ...noBytes },
      ...bought.map(({ id, package_id }) => ({
        ...{ source: 'topup', topup_id: id as string, package_id: package_id as string },
        ...{ status: 'unknown', starts_at: null, ends_at: null, ...noBytes },
      })),
    ]);
    const usage = await world.device.usage(esim.id);
    const gib = 1_073_741_824;
    expect(usage['total_bytes']).toBe(gib + sum(bought, 'data_added_bytes'));
    expect(usage['current_plan_remaining_bytes']).toBeNull();
  });

  it('come with the phone number that the wholesaler states', async () => {
    const [without] = await world.issue('esim_access');
    expect(await world.device.read(without!.id)).toMatchObject({ msisdn: null });
    world.esimAccess.control({ faults: { msisdn: '43660123456' } });
    const esim = await world.issueOne('esim_access');
    expect(await world.device.read(esim.id)).toMatchObject({ msisdn: '43660123456' });
  });
});
