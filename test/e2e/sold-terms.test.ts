import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { startTestService, type TestService } from '../harness/index.js';
import { orderEnded, placeOrder } from '../harness/order-steps.js';

let office: TestService;
let api: TestService;
let worker: TestService | null = null;

beforeAll(async () => {
  office = await startTestService({ role: 'admin' });
  api = await startTestService({ role: 'api', database: office.database });
});

afterAll(async () => {
  await worker?.stop();
  await api.stop();
  await office.stop();
});

describe('an order after a change of its package (D47)', () => {
  it('issues eSIMs with the terms at the time of the sale, even if the package was withdrawn', async () => {
    const { database } = office;
    const partner = api.partnerApi((await office.createPartner()).sandboxKey);
    const setTerm = (days: string) =>
      database.pool.query(
        `UPDATE packages SET terms = terms || '{"installWithinDays": ${days}}' WHERE id = 'pkg_fr_1gb_7d'`,
      );
    await setTerm('30');
    const limited = await placeOrder(partner, { package_id: 'pkg_fr_1gb_7d', quantity: 1 });
    await setTerm('5');
    await database.pool.query(`
      UPDATE packages SET data_bytes = 5, validity_days = 1, activation_policy = 'on_purchase', available = false
      WHERE id = 'pkg_fr_1gb_7d'`);

    worker = await startTestService({ role: 'worker', database });
    const { esims, status } = await orderEnded(partner, limited['id'] as string);
    expect(status).toBe('issued');
    const esim = (await partner.get(`/v1/esims/${esims[0].esim_id}`)).body.data;
    expect(esim.data).toMatchObject({ total_bytes: 1_000_000_000, unlimited: false });
    // The eSIM was sold as on_first_use. Under the new terms, its validity period would already have started.
    expect(esim.expires_at).toBeNull();
    const term = Date.parse(esim.install_by) - Date.parse(esim.created_at);
    expect(term / 86_400_000).toBeCloseTo(30, 3);
    const { rows } = await database.pool.query('SELECT validity_days, activation_policy FROM esims');
    expect(rows).toEqual([{ validity_days: 7, activation_policy: 'on_first_use' }]);
  });
});
