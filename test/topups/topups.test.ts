import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import {
  eventually,
  type HttpClient,
  startReceiver,
  startTestService,
  type TestPartner,
  type TestReceiver,
  type TestService,
} from '../harness/index.js';
import { EsimDevice } from '../harness/esim-device.js';
import { expectProblem, invalidFields } from '../harness/expect-problem.js';
import { issueEsim, type Json, placeOrder, postAtOnce, readFeed } from '../harness/order-steps.js';
import {
  BASE,
  DAY_MS,
  GB,
  placeTopup,
  topUp,
  TOPUP_1GB_7D,
  TOPUP_DAYS,
  topupEnded,
  TOPUP_FAIL,
} from './topup-steps.js';

const TOPUP_5GB_30D = 'pkg_fr_topup_5gb_30d';

let service: TestService;
let partner: TestPartner;
let api: HttpClient;
let device: EsimDevice;
let receiver: TestReceiver;

beforeAll(async () => {
  service = await startTestService();
  partner = await service.createPartner();
  api = partner.sandbox;
  device = new EsimDevice(api);
  receiver = await startReceiver();
  await service.admin.post(`/internal/v1/partners/${partner.id}/webhook-endpoints`, {
    mode: 'sandbox',
    url: receiver.url,
  });
});

afterAll(async () => {
  await service.stop();
  await receiver.close();
});

async function topupEvents(topupId: string): Promise<Json[]> {
  return (await readFeed(api)).filter((event) => event['data'].topup_id === topupId);
}

describe('POST /v1/topups', () => {
  it('accepts a top-up, applies it and announces it with exactly the documented data', async () => {
    const esimId = await device.activeEsim();
    const before = await device.read(esimId);
    const { price } = (await api.get(`/v1/catalog/${TOPUP_1GB_7D}`)).body.data;
    const answer = await api.post('/v1/topups', {
      esim_id: esimId,
      package_id: TOPUP_1GB_7D,
      reference: 'extension-1',
      max_price: price,
      metadata: { traveler: 'A-17' },
    });
    expect(answer.status, answer.text).toBe(202);
    const accepted = answer.body.data as Json;
    expect(answer.headers.get('location')).toBe(`/v1/topups/${accepted['id']}`);
    const expected = {
      id: expect.stringMatching(/^top_[0-9A-HJKMNP-TV-Z]{26}$/) as string,
      mode: 'sandbox',
      esim_id: esimId,
      iccid: before['iccid'],
      package_id: TOPUP_1GB_7D,
      days: null,
      price,
      data_added_bytes: GB,
      validity_added_days: 7,
      reference: 'extension-1',
      metadata: { traveler: 'A-17' },
      auto: false,
      failure: null,
      created_at: expect.any(String) as string,
      failed_at: null,
    };
    expect(accepted).toEqual({ ...expected, status: 'pending', version: 1, completed_at: null });
    const topup = await topupEnded(api, accepted['id'] as string);
    expect(topup).toEqual({
      ...expected,
      status: 'completed',
      version: 3,
      completed_at: expect.any(String) as string,
    });

    const after = await device.read(esimId);
    expect(after['data']).toMatchObject({ total_bytes: 2 * GB, used_bytes: 0, remaining_bytes: 2 * GB });
    const event = await eventually('order.topup.completed arrives', () =>
      receiver.received
        .map((item) => JSON.parse(item.body) as Json)
        .find(({ type, data }) => type === 'order.topup.completed' && data.topup_id === topup['id']),
    );
    expect(Object.keys(event).sort()).toEqual(['created_at', 'data', 'id', 'type']);
    expect(event['data']).toEqual({
      ...(await device.identity(esimId)),
      topup_id: topup['id'],
      package_id: TOPUP_1GB_7D,
      reference: 'extension-1',
      data_added_bytes: GB,
      validity_added_days: 7,
      version: 3,
    });
    expect(await topupEvents(topup['id'] as string)).toEqual([event]);
  });

  it('has null in the fields that a days-only top-up does not change', async () => {
    const esimId = await device.activeEsim();
    const topup = await topUp(api, esimId, TOPUP_DAYS);
    expect(topup).toMatchObject({ status: 'completed', data_added_bytes: null, validity_added_days: 7 });
    const [event] = await topupEvents(topup['id'] as string);
    expect(event!['data']).toMatchObject({
      data_added_bytes: null,
      validity_added_days: 7,
      reference: null,
    });
    expect((await device.read(esimId))['data'].total_bytes).toBe(GB);
  });

  it.each([BASE, 'pkg_fr_unlimited_7d'])(
    'fails the magic top-up of %s after the 202, and changes nothing',
    async (base) => {
      const esimId = await device.activeEsim(base);
      const before = await device.read(esimId);
      const topup = await topUp(api, esimId, TOPUP_FAIL);
      const failure = { code: 'package_unavailable', reason: expect.stringMatching(/./) as string };
      expect(topup).toMatchObject({ status: 'failed', failure, completed_at: null });
      expect(topup['failed_at']).toEqual(expect.any(String));
      const events = await topupEvents(topup['id'] as string);
      expect(events.map((event) => [event['type'], event['data']])).toEqual([
        [
          'order.topup.failed',
          {
            ...(await device.identity(esimId)),
            topup_id: topup['id'],
            package_id: TOPUP_FAIL,
            reference: null,
            ...failure,
            version: 3,
          },
        ],
      ]);
      expect(await device.read(esimId)).toEqual(before);
    },
  );

  it('accepts a reference once, independently of order references', async () => {
    await placeOrder(api, { package_id: BASE, reference: 'shared' });
    const body = { esim_id: await issueEsim(api, BASE), package_id: TOPUP_1GB_7D, reference: 'shared' };
    await placeTopup(api, body);
    expectProblem(await api.post('/v1/topups', body), 409, 'reference_taken');
  });

  it('refuses a top-up beyond the maximum that the wholesaler states, even when several arrive at once', async () => {
    const { pool } = service.database;
    const setMaximum = (max: number | null) =>
      pool.query(`UPDATE packages SET terms = jsonb_set(terms, '{topup,maxCount}', $1) WHERE id = $2`, [
        JSON.stringify(max),
        BASE,
      ]);
    const esimId = await device.activeEsim();
    await topUp(api, esimId, TOPUP_FAIL);
    await setMaximum(3);
    try {
      const body = { esim_id: esimId, package_id: TOPUP_1GB_7D };
      const answers = await Promise.all(Array.from({ length: 8 }, () => api.post('/v1/topups', body)));
      expect(answers.filter(({ status }) => status === 202)).toHaveLength(3);
      const refused = answers.filter(({ status }) => status !== 202);
      for (const answer of refused) expectProblem(answer, 409, 'topup_not_supported');
      expect(refused[0]!.body.detail).toContain('maximum of 3 top-ups');
    } finally {
      await setMaximum(null);
    }
  });

  it('creates one top-up, applied once, for fifty concurrent calls with the same key', async () => {
    const esimId = await device.activeEsim();
    const body = { esim_id: esimId, package_id: TOPUP_1GB_7D };
    const answers = await postAtOnce(api, '/v1/topups', body, 50);
    expect(new Set(answers.map((answer) => answer.status))).toEqual(new Set([202]));
    expect(new Set(answers.map((answer) => answer.text)).size).toBe(1);
    expect(answers.filter((answer) => answer.headers.get('idempotent-replayed') === null)).toHaveLength(1);
    await topupEnded(api, answers[0]!.body.data.id as string);
    expect((await device.read(esimId))['data'].total_bytes).toBe(2 * GB);
    expect((await api.get(`/v1/topups?esim_id=${esimId}`)).body.data).toHaveLength(1);
    expect(await device.eventTypes(esimId)).toEqual(['esim.activated', 'order.topup.completed']);
  });

  it('applies each of twenty concurrent top-ups of one eSIM', async () => {
    const esimId = await device.activeEsim();
    const { expires_at } = await device.read(esimId);
    const topups = await Promise.all(Array.from({ length: 20 }, () => topUp(api, esimId)));
    expect(new Set(topups.map((topup) => topup['status']))).toEqual(new Set(['completed']));
    const after = await device.read(esimId);
    expect(after['data'].total_bytes).toBe(21 * GB);
    expect(Date.parse(after['expires_at'] as string) - Date.parse(expires_at as string)).toBe(
      20 * 7 * DAY_MS,
    );
  });
});

describe('GET /v1/esims/{id}/topup-packages', () => {
  it.each([BASE, 'pkg_fr_unlimited_7d', 'pkg_test_timeout'])(
    'lists exactly the packages that POST accepts: %s',
    async (base) => {
      const esimId = await issueEsim(api, base);
      const offered = ((await api.get(`/v1/esims/${esimId}/topup-packages?limit=100`)).body.data as Json[])
        .map((item) => item['id'] as string)
        .sort();
      const { rows } = await service.database.pool.query<{ id: string }>(
        `SELECT id FROM packages WHERE mode = 'sandbox' AND kind = 'topup' AND available AND
           (coverage && (SELECT coverage FROM packages WHERE mode = 'sandbox' AND id = $1) OR id LIKE 'pkg_test%')`,
        [base],
      );
      const taken: string[] = [];
      for (const { id } of rows) {
        const { status } = await api.post('/v1/topups', { esim_id: esimId, package_id: id });
        if (status === 202) taken.push(id);
      }
      expect(taken.sort()).toEqual(offered);
      expect(offered).toContain(TOPUP_FAIL);
    },
  );
});

describe('reading top-ups', () => {
  it('filters by eSIM, status and reference, newest first, and shows support both modes', async () => {
    const [first, second] = [await issueEsim(api, BASE), await issueEsim(api, BASE)];
    const failed = await topUp(api, first, TOPUP_FAIL);
    const completed = await topUp(api, first);
    const other = await placeTopup(api, {
      esim_id: second,
      package_id: TOPUP_1GB_7D,
      reference: 'find-me',
    });
    const ids = async (query: string): Promise<string[]> =>
      ((await api.get(`/v1/topups?${query}`)).body.data as Json[]).map((item) => item['id'] as string);
    expect(await ids(`esim_id=${first}`)).toEqual([completed['id'], failed['id']]);
    expect(await ids(`esim_id=${first}&status=failed`)).toEqual([failed['id']]);
    expect(await ids('reference=find-me')).toEqual([other['id']]);
    expect((await api.get('/v1/topups?status=done')).status).toBe(400);
    expectProblem(await api.get('/v1/topups/top_00000000000000000000000000'), 404, 'not_found');
    expectProblem(await api.get('/v1/topups/nothing'), 404, 'not_found');

    const support = await service.admin.get(`/internal/v1/partners/${partner.id}/topups?esim_id=${first}`);
    expect(support.body.data).toEqual([completed, failed]);
    const nobody = await service.admin.get('/internal/v1/partners/ptn_00000000000000000000000000/topups');
    expectProblem(nobody, 404, 'not_found');
  });
});

/** Uses up to `bytes` in total, and returns the announced levels and those counted as announced. */
async function usedUpTo(id: string, bytes: number): Promise<{ announced: number[]; crossed: number[] }> {
  const { used_bytes } = await device.usage(id);
  if (bytes > used_bytes) await device.played(id, 'consume', { bytes: bytes - (used_bytes as number) });
  return {
    announced: await device.levels(id),
    crossed: (await device.usage(id))['thresholds_crossed'] as number[],
  };
}

describe('a data top-up', () => {
  it('makes a depleted eSIM active again', async () => {
    const id = await device.activeEsim();
    expect(await device.played(id, 'consume', { percent: 100 })).toMatchObject({ status: 'depleted' });
    await topUp(api, id);
    expect(await device.read(id)).toMatchObject({
      status: 'active',
      data: { total_bytes: 2 * GB, used_bytes: GB, remaining_bytes: GB },
    });
    expect(await device.played(id, 'consume', { percent: 100 })).toMatchObject({
      status: 'depleted',
      data: { used_bytes: 2 * GB },
    });
  });

  it('starts a cycle: each level of the new total is announced once, and no level again before it is reached', async () => {
    const id = await device.activeEsim();
    expect((await usedUpTo(id, 0.8 * GB)).announced).toEqual([50, 80]);
    await topUp(api, id);
    // At 40 % of the new total no level is reached, and no old level is announced again.
    expect(await usedUpTo(id, GB - 1)).toEqual({ announced: [50, 80], crossed: [] });
    expect(await usedUpTo(id, GB)).toEqual({ announced: [50, 80, 50], crossed: [50] });
    expect(await usedUpTo(id, 1.6 * GB - 1)).toMatchObject({ crossed: [50] });
    expect(await usedUpTo(id, 1.6 * GB)).toMatchObject({ crossed: [50, 80] });
    expect(await usedUpTo(id, 2 * GB)).toEqual({
      announced: [50, 80, 50, 80, 100],
      crossed: [50, 80, 100],
    });
    const last = (await device.events(id)).at(-1)!;
    expect(last['data']).toMatchObject({ threshold_percent: 100, used_bytes: 2 * GB, total_bytes: 2 * GB });
  });

  it('counts levels of the new total that the usage has already reached as announced', async () => {
    const id = await device.activeEsim();
    await usedUpTo(id, GB);
    await topUp(api, id);
    // Exactly 50 % of the new total.
    expect(await usedUpTo(id, GB)).toEqual({ announced: [50, 80, 100], crossed: [50] });
    expect(await usedUpTo(id, 1.2 * GB)).toEqual({ announced: [50, 80, 100], crossed: [50] });
    expect(await usedUpTo(id, 2 * GB)).toEqual({
      announced: [50, 80, 100, 80, 100],
      crossed: [50, 80, 100],
    });
  });

  it('is compared in integers: one byte below half is below half, even if floats disagree', async () => {
    const total = 9_000_000_000_000_003;
    for (const [usedBytes, crossed] of [
      [4_500_000_000_000_001, []],
      [4_500_000_000_000_002, [50]],
    ] as const) {
      const id = await device.activeEsim();
      await service.database.pool.query('UPDATE esims SET total_bytes = $2, used_bytes = $3 WHERE id = $1', [
        id,
        total - GB,
        usedBytes,
      ]);
      await topUp(api, id);
      expect(await device.usage(id)).toMatchObject({ total_bytes: total, thresholds_crossed: crossed });
    }
  });
});

describe('a validity extension', () => {
  it('extends the expiry of a running eSIM', async () => {
    const id = await device.activeEsim();
    const before = Date.parse((await device.read(id))['expires_at'] as string);
    await topUp(api, id);
    await topUp(api, id, TOPUP_DAYS);
    expect(Date.parse((await device.read(id))['expires_at'] as string)).toBe(before + 14 * DAY_MS);
  });

  it('starts with an eSIM that has not started yet', async () => {
    const id = await issueEsim(api, BASE);
    await topUp(api, id);
    const waiting = await device.read(id);
    expect(waiting).toMatchObject({
      status: 'issued',
      profile_status: 'released',
      expires_at: null,
      data: { total_bytes: 2 * GB },
    });
    const started = await device.played(id, 'activate');
    const validityMs =
      Date.parse(started['expires_at'] as string) - Date.parse(started['activated_at'] as string);
    expect(validityMs).toBe(14 * DAY_MS);
  });

  it('changes neither data, cycle nor status when the top-up adds nothing else', async () => {
    const id = await device.activeEsim();
    await usedUpTo(id, GB);
    await topUp(api, id, TOPUP_DAYS);
    expect(await device.read(id)).toMatchObject({ status: 'depleted', data: { total_bytes: GB } });
    expect((await device.usage(id))['thresholds_crossed']).toEqual([50, 80, 100]);
  });

  it('also extends an unlimited eSIM, which stays without a total', async () => {
    const id = await device.activeEsim('pkg_fr_unlimited_7d');
    const before = Date.parse((await device.read(id))['expires_at'] as string);
    await topUp(api, id, TOPUP_DAYS);
    expect(await device.read(id)).toMatchObject({
      status: 'active',
      expires_at: new Date(before + 7 * DAY_MS).toISOString(),
      data: { total_bytes: null, remaining_bytes: null, unlimited: true },
    });
  });
});

describe('a refused top-up', () => {
  let esimId: string;
  let unchanged: Json;
  beforeAll(async () => {
    esimId = await device.activeEsim();
    unchanged = await device.read(esimId);
    await service.database.pool.query('UPDATE packages SET available = false WHERE id = $1', [TOPUP_5GB_30D]);
    await service.database.pool.query('UPDATE catalog_versions SET version = version + 1');
    await eventually('the catalog has noticed it', async () => {
      const { text } = await api.get(`/v1/esims/${esimId}/topup-packages?limit=100`);
      return !text.includes(TOPUP_5GB_30D);
    });
  });

  it.each<[string, object, number, Parameters<typeof expectProblem>[2]]>([
    ['an unknown package', { package_id: 'pkg_no_such' }, 404, 'not_found'],
    ['a missing package id', { package_id: 'France, 1 GB' }, 404, 'not_found'],
    ['an unknown eSIM', { esim_id: 'esim_00000000000000000000000000' }, 404, 'not_found'],
    ['a missing eSIM id', { esim_id: 'mine' }, 404, 'not_found'],
    ['a package for other countries', { package_id: 'pkg_de_topup_1gb_7d' }, 409, 'topup_not_supported'],
    ['a base package', { package_id: BASE }, 409, 'topup_not_supported'],
    ['a package that is not sold now', { package_id: TOPUP_5GB_30D }, 409, 'package_unavailable'],
    ['a price above the maximum', { max_price: { amount: 1, currency: 'USD' } }, 409, 'price_changed'],
    ['another currency', { max_price: { amount: 100_000, currency: 'EUR' } }, 409, 'price_changed'],
  ])('has the documented code for %s', async (_name, body, status, code) => {
    const request = { esim_id: esimId, package_id: TOPUP_1GB_7D, ...body };
    expectProblem(await api.post('/v1/topups', request), status, code);
  });

  it.each([
    ['suspended', 'esim_not_ready'],
    ['canceled', 'esim_not_ready'],
    ['expired', 'esim_expired'],
  ] as const)('is refused for a %s eSIM with %s', async (status, code) => {
    const id = await issueEsim(api, BASE);
    await service.database.pool.query('UPDATE esims SET status = $2 WHERE id = $1', [id, status]);
    const answer = await api.post('/v1/topups', { esim_id: id, package_id: TOPUP_1GB_7D });
    expectProblem(answer, 409, code);
    expect((await api.get(`/v1/esims/${id}/topup-packages`)).body.data).toEqual([]);
  });

  it('returns esim_expired from the moment the validity ends, before any sweep', async () => {
    const { pool } = service.database;
    const id = await device.activeEsim();
    const client = await pool.connect();
    try {
      // The row lock blocks the sweep.
      await client.query('BEGIN');
      await client.query('SELECT 1 FROM esims WHERE id = $1 FOR NO KEY UPDATE', [id]);
      await client.query('UPDATE esims SET expires_at = now() WHERE id = $1', [id]);
      await client.query('COMMIT; BEGIN');
      await client.query('SELECT 1 FROM esims WHERE id = $1 FOR NO KEY UPDATE', [id]);
      const answer = await api.post('/v1/topups', { esim_id: id, package_id: TOPUP_1GB_7D });
      expectProblem(answer, 409, 'esim_expired');
    } finally {
      await client.query('ROLLBACK');
      client.release();
    }
  });

  it.each([
    [{ esim_id: undefined }, '/esim_id'],
    [{ package_id: 7 }, '/package_id'],
    [{ quantity: 1 }, '/quantity'],
    [{ reference: '' }, '/reference'],
    [{ max_price: 100 }, '/max_price'],
    [{ metadata: { a: 1 } }, '/metadata'],
  ])('fails validation when the request is wrong at $1', async (body, pointer) => {
    const request = { esim_id: esimId, package_id: TOPUP_1GB_7D, ...body };
    expect(new Set(invalidFields(await api.post('/v1/topups', request)))).toEqual(new Set([pointer]));
  });

  it('leaves no top-up and no change behind', async () => {
    expect((await api.get(`/v1/topups?esim_id=${esimId}`)).body.data).toEqual([]);
    expect(await device.read(esimId)).toEqual(unchanged);
  });
});
