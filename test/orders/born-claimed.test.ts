import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { eventually, startTestService, type TestPartner, type TestService } from '../harness/index.js';
import { placeOrder } from '../harness/order-steps.js';
import { StatementCounter } from '../harness/statement-counter.js';

const PACKAGE = 'pkg_fr_1gb_7d';
/** No sweep finds an order in time. */
const ENV = { SWEEP_INTERVAL_MS: '60000', LEASE_MS: '3000' };

let service: TestService;
let partner: TestPartner;

beforeAll(async () => {
  service = await startTestService({ env: ENV });
  partner = await service.createPartner();
});
afterAll(() => service.stop());

const ended = (id: unknown) => async () => {
  const { data } = (await partner.sandbox.get(`/v1/orders/${id as string}`)).body;
  return ['pending', 'processing'].includes(data.status as string) ? null : data;
};

describe('a sandbox order in a process with a worker', () => {
  it('needs no claim, and its versions count as if it had one (D48)', async () => {
    await placeOrder(partner.sandbox, { package_id: PACKAGE });
    const statements = new StatementCounter('partner-esim-all-worker');
    try {
      const accepted = await placeOrder(partner.sandbox, { package_id: PACKAGE });
      expect(accepted).toMatchObject({ status: 'pending', version: 1 });
      expect(await eventually('it is issued', ended(accepted.id))).toMatchObject({
        status: 'issued',
        version: 3,
      });
      const texts = statements.statements.map(({ text }) => text.replaceAll(/\s+/g, ' '));
      expect(
        texts.some((text) => text.includes('INSERT INTO esims')),
        'the worker is watched',
      ).toBe(true);
      expect(texts.filter((text) => text.includes('UPDATE orders p SET status = CASE p.status'))).toEqual([]);
    } finally {
      statements.stop();
    }
  });

  it('gives its slot back when it is refused', async () => {
    const refused = Array.from({ length: 40 }, () =>
      partner.sandbox.post('/v1/orders', { package_id: PACKAGE, reference: 'twice' }),
    );
    const statuses = (await Promise.all(refused)).map(({ status }) => status);
    expect(statuses.filter((status) => status === 202)).toHaveLength(1);
    expect(statuses.filter((status) => status === 409)).toHaveLength(39);
    const orders = await Promise.all(
      Array.from({ length: 40 }, () => placeOrder(partner.sandbox, { package_id: PACKAGE })),
    );
    for (const { id } of orders) await eventually('it ends', ended(id));
  });
});
