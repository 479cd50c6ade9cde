import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { eventually, type HttpClient, startTestService, type TestService } from '../harness/index.js';
import { EsimDevice } from '../harness/esim-device.js';
import { expectProblem, invalidFields } from '../harness/expect-problem.js';
import { issueEsim, type Json } from '../harness/order-steps.js';
import { BASE, TOPUP_1GB_7D } from './topup-steps.js';

const TOPUP_5GB_30D = 'pkg_fr_topup_5gb_30d';

let service: TestService;
let api: HttpClient;
let device: EsimDevice;

beforeAll(async () => {
  service = await startTestService();
  api = (await service.createPartner()).sandbox;
  device = new EsimDevice(api);
});

afterAll(() => service.stop());

describe('a refused top-up', () => {
  let esimId: string;
  let unchanged: Json;
  beforeAll(async () => {
    esimId = await device.activeEsim();
    unchanged = await device.read(esimId);
    await service.database.pool.query('UPDATE packages SET available = false WHERE id = $1', [TOPUP_5GB_30D]);
    await service.database.pool.query('UPDATE catalog_versions SET version = version + 1');
    await eventually('the catalogue has noticed it', async () => {
      const { text } = await api.get(`/v1/esims/${esimId}/topup-packages?limit=100`);
      return !text.includes(TOPUP_5GB_30D);
    });
  });

  it.each<[string, object, number, Parameters<typeof expectProblem>[2]]>([
    ['an unknown package', { package_id: 'pkg_no_such' }, 404, 'not_found'],
    ['no package id at all', { package_id: 'France, 1 GB' }, 404, 'not_found'],
    ['an unknown eSIM', { esim_id: 'esim_00000000000000000000000000' }, 404, 'not_found'],
    ['no eSIM id at all', { esim_id: 'mine' }, 404, 'not_found'],
    ['a package of other countries', { package_id: 'pkg_de_topup_1gb_7d' }, 409, 'topup_not_supported'],
    ['a base package', { package_id: BASE }, 409, 'topup_not_supported'],
    ['a package that is not sold now', { package_id: TOPUP_5GB_30D }, 409, 'package_unavailable'],
    ['a price above the maximum', { max_price: { amount: 1, currency: 'USD' } }, 409, 'price_changed'],
    ['another currency', { max_price: { amount: 100_000, currency: 'EUR' } }, 409, 'price_changed'],
  ])('for %s has the documented code', async (_name, body, status, code) => {
    const request = { esim_id: esimId, package_id: TOPUP_1GB_7D, ...body };
    expectProblem(await api.post('/v1/topups', request), status, code);
  });

  it.each([
    ['suspended', 'esim_not_ready'],
    ['canceled', 'esim_not_ready'],
    ['expired', 'esim_expired'],
  ] as const)('for a %s eSIM is %s', async (status, code) => {
    const id = await issueEsim(api, BASE);
    await service.database.pool.query('UPDATE esims SET status = $2 WHERE id = $1', [id, status]);
    const answer = await api.post('/v1/topups', { esim_id: id, package_id: TOPUP_1GB_7D });
    expectProblem(answer, 409, code);
    expect((await api.get(`/v1/esims/${id}/topup-packages`)).body.data).toEqual([]);
  });

  it('is esim_expired from the very moment its validity ends, before any sweep', async () => {
    const { pool } = service.database;
    const id = await device.activeEsim();
    const client = await pool.connect();
    try {
      // The row's lock keeps the sweep away.
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
  ])('with %j is a validation failure', async (body, pointer) => {
    const request = { esim_id: esimId, package_id: TOPUP_1GB_7D, ...body };
    expect(new Set(invalidFields(await api.post('/v1/topups', request)))).toEqual(new Set([pointer]));
  });

  it('has left no top-up and no change behind', async () => {
    expect((await api.get(`/v1/topups?esim_id=${esimId}`)).body.data).toEqual([]);
    expect(await device.read(esimId)).toEqual(unchanged);
  });
});
