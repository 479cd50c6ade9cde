import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { eventually, type HttpClient, startTestService, type TestService } from '../harness/index.js';
import { EsimDevice } from '../harness/esim-device.js';
import { expectProblem } from '../harness/expect-problem.js';
import { issueEsim, issueEsims, type Json } from '../harness/order-steps.js';

const DAY_MS = 86_400_000;
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
  it('starts the validity, enables the profile and announces it with exactly three fields', async () => {
    const id = await issueEsim(api, ONE_GB);
    const esim = await device.played(id, 'activate');
    expect(esim).toMatchObject({ id, status: 'active', profile_status: 'enabled' });
    expect(Date.parse(esim['expires_at']) - Date.parse(esim['activated_at'])).toBe(7 * DAY_MS);
    const [event, ...more] = await device.events(id);
    expect(more).toEqual([]);
    expect(event).toMatchObject({ type: 'esim.activated', created_at: esim['activated_at'] });
    expect(event!['data']).toEqual(await device.identity(id));
  });

  it('keeps the expiry that a package counts from its purchase', async () => {
    const id = await issueEsim(api, 'pkg_fr_voice_5gb_30d');
    const before = await device.read(id);
    expect(Date.parse(before.expires_at) - Date.parse(before.created_at)).toBeCloseTo(30 * DAY_MS, -4);
    expect((await device.played(id, 'activate'))['expires_at']).toBe(before.expires_at);
  });

  it('changes and announces nothing when it is repeated, in whatever later state but the end', async () => {
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
    expect((await device.events(id))[1]!['data']).toEqual({
      ...(await device.identity(id)),
      reason: 'validity_ended',
      version: esim['version'],
    });
  });

  it('is shown in the order and the lists', async () => {
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
  ])('comes by itself, once, for an eSIM that is %s when %s: %s', async (status, change, reason) => {
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

  it('leaves an eSIM alone whose time has not come', async () => {
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
