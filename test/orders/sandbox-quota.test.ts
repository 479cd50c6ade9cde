import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import type { Logger } from 'pino';
import { SandboxQuota } from '../../src/partners/index.js';
import {
  type ApiAnswer,
  eventually,
  startTestService,
  type TestPartner,
  type TestService,
} from '../harness/index.js';
import { issueEsim } from '../harness/order-steps.js';

const QUOTA = 12;
const PACKAGE = 'pkg_fr_1gb_7d';

let service: TestService;
let partner: TestPartner;

beforeAll(async () => {
  service = await startTestService({ env: { SANDBOX_QUOTA_PER_DAY: String(QUOTA) } });
});
beforeEach(async () => {
  partner = await service.createPartner();
});
afterAll(() => service.stop());

function order(quantity: number, more: object = {}, by = partner, key?: string): Promise<ApiAnswer> {
  const body = { package_id: PACKAGE, quantity, ...more };
  return by.sandbox.post('/v1/orders', body, key === undefined ? {} : { idempotencyKey: key });
}

async function ordered(): Promise<number> {
  const { rows } = await service.database.pool.query<{ n: number }>(
    'SELECT coalesce(sum(quantity), 0)::int AS n FROM orders WHERE partner_id = $1',
    [partner.id],
  );
  return rows[0]!.n;
}

function refuses(take: () => void): boolean {
  try {
    take();
    return false;
  } catch {
    return true;
  }
}

function expectRefused({ status, body }: ApiAnswer): void {
  expect([status, body.code]).toEqual([409, 'limit_reached']);
  expect(body.detail).toContain(`Sandbox quota of ${QUOTA} per day`);
  expect(body.detail).toContain('00:00 UTC');
}

describe("a partner's daily Sandbox quota", () => {
  it('is exact for forty concurrent orders with two keys, and does not affect other partners', async () => {
    const second = service.partnerApi(await service.createKey(partner.id, 'sandbox'));
    const answers = await Promise.all(
      Array.from({ length: 40 }, (_, nth) =>
        (nth % 2 ? second : partner.sandbox).post('/v1/orders', { package_id: PACKAGE }),
      ),
    );
    expect(answers.filter(({ status }) => status === 202)).toHaveLength(QUOTA);
    for (const answer of answers.filter(({ status }) => status !== 202)) expectRefused(answer);
    expect(await ordered()).toBe(QUOTA);
    expect((await order(1, {}, await service.createPartner())).status).toBe(202);
  });

  it('is not charged for an order that exceeds it, nor for a replay', async () => {
    expectRefused(await order(QUOTA + 1));
    const key = 'quota-once-0001';
    expect((await order(QUOTA - 1, {}, partner, key)).status).toBe(202);
    expect((await order(QUOTA - 1, {}, partner, key)).status).toBe(202);
    expectRefused(await order(2));
    expect((await order(1)).status).toBe(202);
    expectRefused(await order(1));
    expect(await ordered()).toBe(QUOTA);
  });

  it('resets at midnight UTC, and includes what other processes have granted', async () => {
    const clock = { now: () => new Date('2026-11-26T23:59:59.999Z') };
    const logger = { warn: () => undefined } as unknown as Logger;
    const newProcess = (): SandboxQuota =>
      new SandboxQuota(service.database.pool, { sandboxQuotaPerDay: QUOTA }, logger, clock);
    const [first, second] = [newProcess(), newProcess()];
    const scope = { partnerId: partner.id, mode: 'sandbox' } as const;
    const used = async (): Promise<unknown> =>
      (
        await service.database.pool.query('SELECT used FROM sandbox_quotas WHERE partner_id = $1', [
          partner.id,
        ])
      ).rows[0]?.used;
    first.take(scope, QUOTA - 2);
    await eventually('the first process has written', async () => (await used()) === QUOTA - 2);
    second.take(scope, 1);
    await eventually('the second process has written', async () => (await used()) === QUOTA - 1);
    await eventually('the second process knows', async () =>
      Promise.resolve(refuses(() => second.take(scope, 2))),
    );
    clock.now = () => new Date('2026-11-27T00:00:00Z');
    second.take(scope, QUOTA);
    expect(refuses(() => second.take(scope, 1))).toBe(true);
  });

  it('charges each full kilobyte of metadata', async () => {
    const metadata = Object.fromEntries(Array.from({ length: 20 }, (_, nth) => [`k${nth}`, 'x'.repeat(500)]));
    // Slightly more than nine kilobytes.
    expect((await order(3, { metadata })).status).toBe(202);
    expectRefused(await order(1));
    expect(await ordered()).toBe(3);
  });

  it('charges top-ups and steps of a simulated device', async () => {
    const esim = await issueEsim(partner.sandbox, PACKAGE);
    const step = (name: string, body?: object): Promise<ApiAnswer> =>
      partner.sandbox.post(`/v1/sandbox/esims/${esim}/${name}`, body);
    const topUp = (): Promise<ApiAnswer> =>
      partner.sandbox.post('/v1/topups', { esim_id: esim, package_id: 'pkg_test_topup_fail' });
    expect((await step('activate')).status).toBe(200);
    expect((await topUp()).status).toBe(202);
    for (let used = 3; used < QUOTA; used++) {
      expect((await step('consume', { bytes: 1 })).status).toBe(200);
    }
    for (const refused of [await step('consume', { bytes: 1 }), await step('expire'), await topUp()])
      expectRefused(refused);
    expect((await partner.sandbox.get(`/v1/esims/${esim}`)).body.data.data.used_bytes).toBe(QUOTA - 3);
  });
});
