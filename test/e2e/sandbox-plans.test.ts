import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { eventually, type HttpClient, startTestService, type TestService } from '../harness/index.js';
import { EsimDevice } from '../harness/esim-device.js';
import { issueEsim, type Json } from '../harness/order-steps.js';
import { BASE, GB, topUp, TOPUP_1GB_7D } from '../topups/topup-steps.js';

const DAY_MS = 86_400_000;
const THROTTLED = 'pkg_test_throttled';
const QUEUED = 'pkg_test_topup_queued';

let service: TestService;
let api: HttpClient;
let device: EsimDevice;

beforeAll(async () => {
  service = await startTestService();
  api = (await service.createPartner()).sandbox;
  device = new EsimDevice(api);
});

afterAll(() => service.stop());

async function plansOf(id: string, query = ''): Promise<{ pooled: boolean; data: Json[]; body: Json }> {
  const answer = await api.get(`/v1/esims/${id}/plans${query}`);
  expect(answer.status, answer.text).toBe(200);
  const body = answer.body as unknown as Json;
  return { pooled: body['pooled'] as boolean, data: body['data'] as Json[], body };
}

describe('pkg_test_throttled', () => {
  it('stays active at 100 percent, sends the event, and counts no further data', async () => {
    const { data } = (await api.get(`/v1/catalog/${THROTTLED}`)).body;
    expect(data['fair_use']).toMatchObject({ then: 'slower', per: 'plan', full_speed_bytes: GB });
    const id = await device.activeEsim(THROTTLED);
    expect(await device.played(id, 'consume', { percent: 100 })).toMatchObject({
      status: 'active',
      data: { used_bytes: GB, remaining_bytes: 0 },
    });
    expect(await device.levels(id)).toEqual([50, 80, 100]);
    const more = await device.played(id, 'consume', { bytes: GB / 2 });
    expect(more).toMatchObject({ status: 'active', data: { used_bytes: GB, remaining_bytes: 0 } });
    expect(await device.levels(id)).toEqual([50, 80, 100]);
  });
});

describe('the plans of a sandbox eSIM', () => {
  it('are one pot while its top-ups add to it', async () => {
    const id = await device.activeEsim();
    const topup = await topUp(api, id, TOPUP_1GB_7D);
    const { order_id, activated_at, expires_at } = await device.read(id);
    const { pooled, data } = await plansOf(id);
    expect(pooled).toBe(true);
    expect(data).toMatchObject([
      {
        ...{ source: 'order', order_id, topup_id: null, package_id: BASE, status: 'active' },
        ...{ total_bytes: null, starts_at: activated_at, ends_at: expires_at },
      },
      { source: 'topup', order_id: null, topup_id: topup['id'], status: 'unknown', remaining_bytes: null },
    ]);
    expect(await device.usage(id)).toMatchObject({
      total_bytes: 2 * GB,
      current_plan_remaining_bytes: null,
    });
    const first = await plansOf(id, '?limit=1');
    expect(first.data).toEqual(data.slice(0, 1));
    const second = await plansOf(id, `?limit=1&cursor=${first.body['next_cursor']}`);
    expect(second.data).toEqual(data.slice(1));
    expect(second.body['has_more']).toBe(false);
  });

  it('are a 404 for an eSIM of another partner', async () => {
    const other = (await service.createPartner()).sandbox;
    expect((await other.get(`/v1/esims/${await issueEsim(api, BASE)}/plans`)).status).toBe(404);
  });
});

describe('pkg_test_topup_queued', () => {
  it('is listed for the eSIM, and says that it queues', async () => {
    const id = await issueEsim(api, BASE);
    const { data } = (await api.get(`/v1/esims/${id}/topup-packages?limit=100`)).body;
    expect((data as Json[]).find((item) => item['id'] === QUEUED)).toMatchObject({
      topup: { kinds: ['plan'], behavior: 'queues' },
    });
  });

  it('waits behind the plan in use, and starts when that is used up', async () => {
    const id = await device.activeEsim();
    await device.played(id, 'consume', { percent: 60 });
    const { activated_at, expires_at } = await device.read(id);
    const { id: topup_id } = await topUp(api, id, QUEUED);
    expect(await plansOf(id)).toMatchObject({
      pooled: false,
      data: [
        {
          ...{ source: 'order', status: 'active', total_bytes: GB, used_bytes: 0.6 * GB },
          ...{ remaining_bytes: 0.4 * GB, starts_at: activated_at, ends_at: expires_at },
        },
        { topup_id, status: 'queued', total_bytes: GB, remaining_bytes: GB, starts_at: null, ends_at: null },
      ],
    });
    expect(await device.usage(id)).toMatchObject({
      ...{ total_bytes: 2 * GB, used_bytes: 0.6 * GB, remaining_bytes: 1.4 * GB },
      current_plan_remaining_bytes: 0.4 * GB,
    });
    expect(await device.read(id)).toMatchObject({ status: 'active', expires_at: null });

    await device.played(id, 'consume', { bytes: 0.5 * GB });
    const { data } = await plansOf(id);
    expect(data).toMatchObject([
      { status: 'ended', used_bytes: GB, remaining_bytes: 0 },
      { topup_id, status: 'active', used_bytes: 0.1 * GB, remaining_bytes: 0.9 * GB },
    ]);
    expect(Date.parse(data[1]!['ends_at']) - Date.parse(data[1]!['starts_at'])).toBe(7 * DAY_MS);
    expect(await device.read(id)).toMatchObject({ status: 'active', expires_at: data[1]!['ends_at'] });
    expect(await device.usage(id)).toMatchObject({ current_plan_remaining_bytes: 0.9 * GB });
    // Thresholds compare with the sum: 0.6 of 2 GB was below 50 percent of it.
    expect(await device.levels(id)).toEqual([50, 50]);
    await device.played(id, 'consume', { bytes: GB });
    expect(await device.read(id)).toMatchObject({ status: 'depleted' });
    expect(await device.usage(id)).toMatchObject({ current_plan_remaining_bytes: 0 });
    expect(await device.levels(id)).toEqual([50, 50, 80, 100]);
  });

  it('starts when the plan in use ends, and the eSIM expires after the last plan', async () => {
    const id = await device.activeEsim();
    await device.played(id, 'consume', { percent: 10 });
    await topUp(api, id, QUEUED);
    expect(await device.played(id, 'expire')).toMatchObject({ status: 'active' });
    expect((await plansOf(id)).data).toMatchObject([
      { status: 'ended', used_bytes: 0.1 * GB, remaining_bytes: 0 },
      { status: 'active', remaining_bytes: GB },
    ]);
    // Data that was left in the ended plan is lost.
    expect(await device.usage(id)).toMatchObject({
      ...{ used_bytes: GB, remaining_bytes: GB, current_plan_remaining_bytes: GB },
    });
    expect(await device.eventTypes(id)).not.toContain('esim.expired');
    expect(await device.played(id, 'expire')).toMatchObject({ status: 'expired' });
    expect((await plansOf(id)).data.map(({ status }) => status as string)).toEqual(['ended', 'ended']);
    expect(await device.eventTypes(id)).toContain('esim.expired');
  });

  it('starts by itself when the time of the plan in use is over', async () => {
    const id = await device.activeEsim();
    await topUp(api, id, QUEUED);
    await service.database.pool.query(`UPDATE esims SET expires_at = now() WHERE id = $1`, [id]);
    const { data } = await eventually('the next plan starts', async () => {
      const plans = await plansOf(id);
      return plans.data[1]!['status'] === 'active' ? plans : null;
    });
    expect(data[0]).toMatchObject({ status: 'ended' });
    expect(await device.read(id)).toMatchObject({ status: 'active', expires_at: data[1]!['ends_at'] });
  });

  it('starts at once on an eSIM without data left, and waits on one that is not in use yet', async () => {
    const spent = await device.activeEsim();
    await device.played(spent, 'consume', { percent: 100 });
    await topUp(api, spent, QUEUED);
    expect(await device.read(spent)).toMatchObject({ status: 'active' });
    expect((await plansOf(spent)).data).toMatchObject([{ status: 'ended' }, { status: 'active' }]);

    const unused = await issueEsim(api, BASE);
    await topUp(api, unused, QUEUED);
    expect((await plansOf(unused)).data).toMatchObject([{ status: 'queued' }, { status: 'queued' }]);
    expect(await device.usage(unused)).toMatchObject({ current_plan_remaining_bytes: null });
    await device.played(unused, 'activate');
    expect((await plansOf(unused)).data).toMatchObject([{ status: 'active' }, { status: 'queued' }]);
    await topUp(api, unused, TOPUP_1GB_7D);
    expect((await plansOf(unused)).data).toMatchObject([
      { status: 'active', total_bytes: 2 * GB, remaining_bytes: 2 * GB },
      { status: 'queued', total_bytes: GB },
      { status: 'unknown', package_id: TOPUP_1GB_7D },
    ]);
    expect(await device.usage(unused)).toMatchObject({
      ...{ total_bytes: 3 * GB, current_plan_remaining_bytes: 2 * GB },
    });
  });
});
