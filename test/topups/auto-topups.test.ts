import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import {
  eventually,
  type HttpClient,
  startTestService,
  type TestPartner,
  type TestService,
} from '../harness/index.js';
import { EsimDevice } from '../harness/esim-device.js';
import { expectProblem, invalidFields } from '../harness/expect-problem.js';
import { issueEsims, type Json } from '../harness/order-steps.js';
import { BASE, GB, TOPUP_1GB_7D, TOPUP_FAIL } from './topup-steps.js';

const ENV = { SWEEP_INTERVAL_MS: '50' };

let service: TestService;
let partner: TestPartner;
let api: HttpClient;
let device: EsimDevice;
let price: Json;

beforeAll(async () => {
  service = await startTestService({ env: ENV });
  partner = await service.createPartner();
  api = partner.sandbox;
  device = new EsimDevice(api);
  price = (await api.get(`/v1/catalog/${TOPUP_1GB_7D}`)).body.data.price as Json;
});

afterAll(() => service.stop());

const pathOf = (esimId: string): string => `/v1/esims/${esimId}/auto-topup`;

const ruleOf = (more: object = {}): object => ({
  at_percent: 80,
  package_id: TOPUP_1GB_7D,
  max_times: 3,
  max_price: price,
  ...more,
});

async function set(esimId: string, more: object = {}): Promise<Json> {
  const answer = await api.call('PUT', pathOf(esimId), { body: ruleOf(more) });
  expect(answer.status, answer.text).toBe(200);
  return answer.body.data as Json;
}

async function get(esimId: string): Promise<Json> {
  const answer = await api.get(pathOf(esimId));
  expect(answer.status, answer.text).toBe(200);
  return answer.body.data as Json;
}

async function topupsOf(esimId: string): Promise<Json[]> {
  return (await api.get(`/v1/topups?esim_id=${esimId}`)).body.data as Json[];
}

/** Waits until the eSIM has `count` top-ups, all ended, and no crossing of its rule waits. */
async function settled(esimId: string, count: number): Promise<Json[]> {
  return eventually(`${count} top-ups have ended`, async () => {
    const topups = await topupsOf(esimId);
    const { rows } = await service.database.pool.query(
      'SELECT FROM esim_auto_topups WHERE esim_id = $1 AND due_at IS NOT NULL',
      [esimId],
    );
    const isOpen = topups.some(({ status }) => status === 'pending' || status === 'processing');
    return topups.length === count && !isOpen && rows.length === 0 ? topups : null;
  });
}

async function ruledEsim(more: object = {}): Promise<string> {
  const esimId = await device.activeEsim();
  await set(esimId, more);
  return esimId;
}

describe('PUT /v1/esims/{id}/auto-topup', () => {
  it('sets a rule, which GET shows and DELETE ends', async () => {
    const esimId = await device.activeEsim();
    expectProblem(await api.get(pathOf(esimId)), 404, 'not_found');
    const rule = await set(esimId);
    expect(rule).toEqual({
      esim_id: esimId,
      status: 'active',
      at_percent: 80,
      package_id: TOPUP_1GB_7D,
      max_times: 3,
      times_used: 0,
      max_price: price,
      last_topup_id: null,
      last_failure: null,
      created_at: expect.any(String) as string,
      updated_at: expect.any(String) as string,
    });
    expect(await get(esimId)).toEqual(rule);
    for (let call = 0; call < 2; call++) {
      const answer = await api.call('DELETE', pathOf(esimId));
      expect(answer.status, answer.text).toBe(200);
      expect(answer.body.data).toEqual({ esim_id: esimId, deleted: true });
    }
    expectProblem(await api.get(pathOf(esimId)), 404, 'not_found');
    await device.played(esimId, 'consume', { percent: 90 });
    expect(await settled(esimId, 0)).toEqual([]);
  });

  it('changes nothing when it is repeated', async () => {
    const esimId = await device.activeEsim();
    const rule = await set(esimId);
    expect(await set(esimId)).toEqual(rule);
    expect(await set(esimId, { max_times: 4 })).toMatchObject({
      max_times: 4,
      created_at: rule['created_at'],
    });
  });

  it.each([
    ['at_percent', { at_percent: 70 }],
    ['max_times', { max_times: 0 }],
    ['max_times', { max_times: 101 }],
    ['max_price', { max_price: null }],
    ['package_id', { package_id: '' }],
  ])('refuses a wrong %s', async (field, more) => {
    const esimId = await device.activeEsim();
    const answer = await api.call('PUT', pathOf(esimId), { body: ruleOf(more) });
    expectProblem(answer, 400, 'validation_failed');
    expect(invalidFields(answer).join()).toContain(`/${field}`);
  });

  it('refuses a top-up that POST /v1/topups would refuse', async () => {
    const esimId = await device.activeEsim();
    const put = (more: object): Promise<Awaited<ReturnType<HttpClient['call']>>> =>
      api.call('PUT', pathOf(esimId), { body: ruleOf(more) });
    expectProblem(await put({ package_id: 'pkg_unknown' }), 404, 'not_found');
    expectProblem(await put({ package_id: BASE }), 409, 'topup_not_supported');
    const below = { ...price, amount: (price['amount'] as number) - 1 };
    expectProblem(await put({ max_price: below }), 409, 'price_changed');
    await device.played(esimId, 'expire');
    expectProblem(await put({}), 409, 'esim_expired');
    const unlimited = await device.activeEsim('pkg_fr_unlimited_7d');
    expectProblem(await api.call('PUT', pathOf(unlimited), { body: ruleOf() }), 409, 'topup_not_supported');
  });

  it("hides another partner's eSIM", async () => {
    const esimId = await ruledEsim();
    const other = (await service.createPartner()).sandbox;
    expectProblem(await other.call('PUT', pathOf(esimId), { body: ruleOf() }), 404, 'not_found');
    expectProblem(await other.get(pathOf(esimId)), 404, 'not_found');
    expectProblem(await other.call('DELETE', pathOf(esimId)), 404, 'not_found');
    expect(await get(esimId)).toMatchObject({ status: 'active' });
  });
});

describe('an automatic top-up', () => {
  it('is placed once when the usage crosses the level, as an ordinary top-up', async () => {
    const esimId = await ruledEsim();
    await device.played(esimId, 'consume', { percent: 79 });
    expect(await settled(esimId, 0)).toEqual([]);
    await device.played(esimId, 'consume', { percent: 1 });
    const [topup] = await settled(esimId, 1);
    expect(topup).toMatchObject({
      auto: true,
      status: 'completed',
      package_id: TOPUP_1GB_7D,
      price,
      reference: null,
    });
    expect((await device.read(esimId))['data']).toMatchObject({ total_bytes: 2 * GB });
    expect(await get(esimId)).toMatchObject({
      status: 'active',
      times_used: 1,
      last_topup_id: topup!['id'],
      last_failure: null,
    });
    expect(await device.eventTypes(esimId)).toContain('order.topup.completed');
  });

  it('is placed once when the usage jumps over several levels', async () => {
    const esimId = await ruledEsim({ at_percent: 50 });
    await device.played(esimId, 'consume', { percent: 100 });
    await settled(esimId, 1);
    expect(await get(esimId)).toMatchObject({ times_used: 1 });
  });

  it('is placed again in each data cycle, but not more often than max_times', async () => {
    const esimId = await ruledEsim({ max_times: 2 });
    await device.played(esimId, 'consume', { bytes: 0.8 * GB });
    await settled(esimId, 1);
    await device.played(esimId, 'consume', { bytes: 0.8 * GB });
    await settled(esimId, 2);
    expect(await get(esimId)).toMatchObject({ status: 'exhausted', times_used: 2 });
    await device.played(esimId, 'consume', { bytes: 1.4 * GB });
    await settled(esimId, 2);
    // The rule counts on after a change.
    await set(esimId, { max_times: 3 });
    expect(await get(esimId)).toMatchObject({ status: 'active', times_used: 2 });
  });

  it('does not count a top-up that fails, and waits for the next level', async () => {
    const failing = (await api.get(`/v1/catalog/${TOPUP_FAIL}`)).body.data as Json;
    const esimId = await ruledEsim({
      at_percent: 50,
      package_id: TOPUP_FAIL,
      max_price: failing['price'],
      max_times: 1,
    });
    await device.played(esimId, 'consume', { percent: 50 });
    const [topup] = await settled(esimId, 1);
    expect(topup).toMatchObject({ status: 'failed', auto: true });
    expect(await get(esimId)).toMatchObject({ status: 'active', times_used: 0, last_topup_id: topup!['id'] });
    await set(esimId, { at_percent: 50, max_times: 1 });
    await device.played(esimId, 'consume', { percent: 30 });
    await settled(esimId, 2);
    expect(await get(esimId)).toMatchObject({ status: 'exhausted', times_used: 1 });
  });

  it('is placed once for each crossing by several workers', async () => {
    const worker = await startTestService({ role: 'worker', database: service.database, env: ENV });
    try {
      const esimIds = await issueEsims(api, BASE, 20);
      for (const esimId of esimIds) {
        await device.played(esimId, 'activate');
        await set(esimId);
      }
      const use = (esimId: string): Promise<Json> => device.played(esimId, 'consume', { percent: 80 });
      await Promise.all(esimIds.map(use));
      for (const esimId of esimIds) await settled(esimId, 1);
    } finally {
      await worker.stop();
    }
  });

  it('says that it is off for an eSIM that has ended', async () => {
    const esimId = await ruledEsim();
    await device.played(esimId, 'expire');
    expect(await get(esimId)).toMatchObject({ status: 'expired', times_used: 0 });
  });
});
