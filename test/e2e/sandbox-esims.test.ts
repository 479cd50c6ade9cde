import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { eventually, type HttpClient, startTestService, type TestService } from '../harness/index.js';
import { EsimDevice } from '../harness/esim-device.js';
import { expectProblem, invalidFields } from '../harness/expect-problem.js';
import { issueEsim, issueEsims, type Json } from '../harness/order-steps.js';

const DAY_MS = 86_400_000;
const GB = 1_000_000_000;
const ONE_GB = 'pkg_fr_1gb_7d';

let service: TestService;
let api: HttpClient;
let device: EsimDevice;

beforeAll(async () => {
  service = await startTestService();
  api = (await service.createPartner()).sandbox;
  device = new EsimDevice(api);
});

afterAll(() => service.stop());

describe('activate', () => {
  it('starts the validity, enables the profile and sends an event with exactly three fields', async () => {
    const id = await issueEsim(api, ONE_GB);
    const esim = await device.played(id, 'activate');
    expect(esim).toMatchObject({ id, status: 'active', profile_status: 'enabled' });
    expect(Date.parse(esim['expires_at']) - Date.parse(esim['activated_at'])).toBe(7 * DAY_MS);
    const [event, ...more] = await device.events(id);
    expect(more.map(({ type }) => type as string)).toEqual(['esim.profile.changed']);
    expect(event).toMatchObject({ type: 'esim.activated', created_at: esim['activated_at'] });
    expect(event!['data']).toEqual(await device.identity(id));
  });

  it('keeps an expiry that counts from the purchase', async () => {
    const id = await issueEsim(api, 'pkg_fr_voice_5gb_30d');
    const before = await device.read(id);
    expect(Date.parse(before.expires_at) - Date.parse(before.created_at)).toBeCloseTo(30 * DAY_MS, -4);
    expect((await device.played(id, 'activate'))['expires_at']).toBe(before.expires_at);
  });

  it('changes and announces nothing when it is repeated in any later state except the end', async () => {
    const id = await device.activeEsim();
    const first = await device.read(id);
    expect(await device.played(id, 'activate')).toMatchObject({
      activated_at: first.activated_at,
      status: 'active',
    });
    await device.played(id, 'consume', { percent: 100 });
    expect(await device.played(id, 'activate')).toMatchObject({ status: 'depleted' });
    await device.played(id, 'expire');
    expectProblem(await device.play(id, 'activate'), 409, 'esim_not_ready');
    expect((await device.eventTypes(id)).filter((type) => type === 'esim.activated')).toHaveLength(1);
  });
});

describe('expire', () => {
  it('ends an eSIM in use once, with the documented data', async () => {
    const id = await device.activeEsim();
    const esim = await device.played(id, 'expire');
    expect(esim).toMatchObject({ status: 'expired' });
    expect(Date.parse(esim['expires_at'])).toBeLessThanOrEqual(Date.now() + 1_000);
    expect(await device.played(id, 'expire')).toMatchObject({
      status: 'expired',
      expires_at: esim['expires_at'],
    });
    expect(await device.eventTypes(id)).toEqual(['esim.activated', 'esim.expired']);
    expect((await device.events(id)).at(-1)!['data']).toEqual({
      ...(await device.identity(id)),
      reason: 'validity_ended',
      version: esim['version'],
    });
  });

  it('is visible in the order and the lists', async () => {
    const id = await device.activeEsim();
    const { order_id } = await device.played(id, 'expire');
    expect((await api.get(`/v1/orders/${order_id}`)).body.data.esims).toMatchObject([
      { esim_id: id, status: 'expired' },
    ]);
    const listed = (await api.get(`/v1/esims?order_id=${order_id}&status=expired`)).body.data;
    expect(listed.map((esim: Json) => esim['id'])).toEqual([id]);
  });

  it.each([
    ['active', `expires_at = now() - interval '1 second'`, 'validity_ended'],
    ['depleted', `expires_at = now() - interval '1 second'`, 'validity_ended'],
    ['issued', `install_by = now() - interval '1 second'`, 'never_used'],
    ['issued', `expires_at = now() - interval '1 second'`, 'validity_ended'],
  ])('happens automatically, once, for an eSIM that is %s when %s: %s', async (status, change, reason) => {
    const id = status === 'issued' ? await issueEsim(api, ONE_GB) : await device.activeEsim();
    if (status === 'depleted') await device.played(id, 'consume', { percent: 100 });
    await service.database.pool.query(`UPDATE esims SET ${change} WHERE id = $1`, [id]);
    await eventually('expired', async () => (await device.read(id))['status'] === 'expired');
    const { version } = await device.played(id, 'expire');
    const expired = (await device.events(id)).filter((event) => event['type'] === 'esim.expired');
    expect(expired.map((event) => event['data'])).toEqual([
      { ...(await device.identity(id)), reason, version },
    ]);
  });

  it('does not expire an eSIM before its time', async () => {
    const [due, waiting] = await issueEsims(api, ONE_GB, 2);
    const soon = `install_by = now() + interval '1 hour'`;
    await service.database.pool.query(`UPDATE esims SET ${soon} WHERE id = $1`, [waiting]);
    await service.database.pool.query(`UPDATE esims SET install_by = now() WHERE id = $1`, [due]);
    await eventually('the due one expired', async () =>
      (await device.eventTypes(due!)).includes('esim.expired'),
    );
    expect((await device.read(waiting!))['status']).toBe('issued');
  });
});

describe('consume', () => {
  it('crosses each level once, exactly at its boundary, and never between levels', async () => {
    const id = await device.activeEsim();
    const steps: [number, number[]][] = [
      [499_999_999, []],
      [1, [50]],
      [1, [50]],
      [299_999_998, [50]],
      [1, [50, 80]],
      [199_999_999, [50, 80]],
      [1, [50, 80, 100]],
      [1, [50, 80, 100]],
    ];
    for (const [bytes, levels] of steps) {
      await device.played(id, 'consume', { bytes });
      expect((await device.usage(id))['thresholds_crossed']).toEqual(levels);
      expect(await device.levels(id)).toEqual(levels);
    }
  });

  it('announces a level with exactly the documented data', async () => {
    const id = await device.activeEsim();
    const esim = await device.played(id, 'consume', { bytes: 600_000_000 });
    const event = (await device.events(id)).at(-1)!;
    expect(event['type']).toBe('esim.usage.threshold');
    expect(event['data']).toEqual({
      ...(await device.identity(id)),
      threshold_percent: 50,
      used_bytes: 600_000_000,
      total_bytes: GB,
      as_of: esim['data'].as_of,
      version: esim['version'],
    });
  });

  it('announces several levels crossed at once as separate events, in ascending order', async () => {
    const ids = await issueEsims(api, ONE_GB, 12);
    for (const id of ids) await device.played(id, 'activate');
    await Promise.all(ids.map((id) => device.played(id, 'consume', { bytes: 5 * GB })));
    const levels = await Promise.all(ids.map((id) => device.levels(id)));
    expect(levels).toEqual(ids.map(() => [50, 80, 100]));
  });

  it('is capped at the bought amount, which depletes the eSIM', async () => {
    const id = await device.activeEsim();
    const esim = await device.played(id, 'consume', { bytes: 10 ** 15 });
    expect(esim).toMatchObject({
      status: 'depleted',
      data: { total_bytes: GB, used_bytes: GB, remaining_bytes: 0, unlimited: false },
    });
    expect(await device.played(id, 'consume', { percent: 1 })).toMatchObject({ data: { used_bytes: GB } });
    expect(await device.usage(id)).toMatchObject({ percent_used: 100, used_bytes: GB, source: 'simulated' });
    expect(await device.levels(id)).toHaveLength(3);
  });

  it('accepts a percentage of the total, rounded up to whole bytes', async () => {
    const id = await device.activeEsim();
    await service.database.pool.query('UPDATE esims SET total_bytes = 1001 WHERE id = $1', [id]);
    expect(await device.played(id, 'consume', { percent: 1 })).toMatchObject({ data: { used_bytes: 11 } });
    expect(await device.played(id, 'consume', { percent: 48 })).toMatchObject({
      data: { used_bytes: 11 + 481 },
    });
    expect((await device.usage(id))['thresholds_crossed']).toEqual([]);
    expect(await device.played(id, 'consume', { percent: 1 })).toMatchObject({ data: { used_bytes: 503 } });
    expect((await device.usage(id))['thresholds_crossed']).toEqual([50]);
  });

  it('loses nothing and announces nothing twice for twenty concurrent reports', async () => {
    const id = await device.activeEsim();
    const answers = await Promise.all(
      Array.from({ length: 20 }, () => device.play(id, 'consume', { percent: 4 })),
    );
    expect(answers.map((answer) => answer.status)).toEqual(answers.map(() => 200));
    expect(await device.usage(id)).toMatchObject({ used_bytes: 800_000_000, thresholds_crossed: [50, 80] });
    expect(await device.levels(id)).toEqual([50, 80]);
  });

  it('requires an eSIM in use', async () => {
    const id = await issueEsim(api, ONE_GB);
    expectProblem(await device.play(id, 'consume', { bytes: 1 }), 409, 'esim_not_ready');
    await device.played(id, 'activate');
    await device.played(id, 'expire');
    expectProblem(await device.play(id, 'consume', { bytes: 1 }), 409, 'esim_not_ready');
  });

  it.each([
    [{ bytes: 1, percent: 1 }, ''],
    [{}, ''],
    [{ bytes: null, percent: null }, ''],
    [{ bytes: 0 }, '/bytes'],
    [{ bytes: 10 ** 15 + 1 }, '/bytes'],
    [{ bytes: 1.5 }, '/bytes'],
    [{ bytes: '1' }, '/bytes'],
    [{ percent: 0 }, '/percent'],
    [{ percent: 101 }, '/percent'],
    [{ percent: 0.5 }, '/percent'],
    [{ percent: true }, '/percent'],
    [{ bytes: 1, megabytes: 1 }, '/megabytes'],
  ])('refuses %j', async (body, pointer) => {
    expect(new Set(invalidFields(await device.play(refusing, 'consume', body)))).toEqual(new Set([pointer]));
  });

  it('accepts either field while the other is null', async () => {
    expect(await device.played(refusing, 'consume', { bytes: 7, percent: null })).toMatchObject({
      data: { used_bytes: 7 },
    });
  });

  it('accepts only bytes for an unlimited eSIM, and never announces a level', async () => {
    const id = await device.activeEsim('pkg_fr_unlimited_7d');
    expect(invalidFields(await device.play(id, 'consume', { percent: 50 }))).toEqual(['/percent']);
    const esim = await device.played(id, 'consume', { bytes: 5_000 * GB });
    expect(esim).toMatchObject({
      status: 'active',
      data: { total_bytes: null, used_bytes: 5_000 * GB, remaining_bytes: null, unlimited: true },
    });
    expect(await device.usage(id)).toMatchObject({
      percent_used: null,
      total_bytes: null,
      thresholds_crossed: [],
    });
    expect(await device.eventTypes(id)).toEqual(['esim.activated']);
  });

  let refusing: string;
  beforeAll(async () => {
    refusing = await device.activeEsim();
  });
});
