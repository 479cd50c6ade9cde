import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import {
  eventually,
  type HttpClient,
  startTestService,
  type TestPartner,
  type TestService,
} from '../harness/index.js';
import { type Json, readFeed } from '../harness/order-steps.js';

let service: TestService;
let partner: TestPartner;
let live: HttpClient;
let wallet: string;
beforeAll(async () => {
  service = await startTestService({ env: { SWEEP_INTERVAL_MS: '100' } });
  partner = await service.createPartner();
  live = service.partnerApi(await service.createKey(partner.id, 'live'));
  wallet = `/internal/v1/partners/${partner.id}/wallet`;
});
afterAll(() => service.stop());

let reference = 0;
async function book(amount: number): Promise<void> {
  const body = { amount: { amount, currency: 'USD' }, reference: `booking-${reference++}`, note: 'test' };
  const answer = await service.admin.post(`${wallet}/${amount > 0 ? 'deposits' : 'adjustments'}`, body);
  expect(answer.status, answer.text).toBe(201);
}

const setLimit = async (low_balance_amount: number | null): Promise<void> => {
  const answer = await service.admin.call('PATCH', wallet, { body: { currency: 'USD', low_balance_amount } });
  expect(answer.status, answer.text).toBe(200);
};

/** The data of every `wallet.low` so far, once every signal has been taken. */
async function lows(): Promise<Json[]> {
  await eventually('no signal waits', async () => {
    const { rows } = await service.database.pool.query('SELECT 1 FROM wallet_low_signals');
    return rows.length === 0;
  });
  return (await readFeed(live)).filter(({ type }) => type === 'wallet.low').map(({ data }) => data as Json);
}

describe('wallet.low', () => {
  it('is sent once each time the available amount falls below the limit', async () => {
    await book(10_000);
    await setLimit(5_000);
    expect(await lows()).toEqual([]);
    await book(-5_000);
    expect(await lows(), 'exactly the limit is not below it').toEqual([]);
    await Promise.all(Array.from({ length: 20 }, () => book(-10)));
    const [first, ...others] = await lows();
    expect(others).toEqual([]);
    expect(first).toMatchObject({ currency: 'USD', available: 4_990, threshold: 5_000 });
    await book(100);
    await book(-200);
    expect(await lows(), 'it was not at the limit again').toHaveLength(1);
    await book(1_000);
    await book(-1_000);
    expect(await lows()).toHaveLength(2);
  });

  it('is sent when a new limit is above the available amount, and never without a limit', async () => {
    const before = (await lows()).length;
    await setLimit(null);
    await book(-100);
    expect(await lows()).toHaveLength(before);
    await setLimit(1_000_000);
    expect(await lows()).toHaveLength(before + 1);
    await setLimit(1_000_001);
    expect(await lows(), 'it is low already').toHaveLength(before + 1);
  });
});
