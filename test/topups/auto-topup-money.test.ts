import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { eventually, type HttpClient } from '../harness/index.js';
import type { Json } from '../harness/order-steps.js';
import { balanceOf, PRICE, ScriptedShop, type TopupBuyer } from './scripted-shop.js';
import { placeTopup, TOPUP_1GB_7D, topupEnded } from './topup-steps.js';

const DEPOSIT = 10 * PRICE;

let shop: ScriptedShop;
let buyer: TopupBuyer;

beforeAll(async () => {
  shop = await ScriptedShop.open(DEPOSIT, { SWEEP_INTERVAL_MS: '50' });
  shop.connectPartnerApi();
  shop.upstream.otherwise = () => Promise.resolve({ state: 'completed', totalBytes: null, expiresAt: null });
});
beforeEach(async () => {
  buyer = await shop.buyer(DEPOSIT);
});
afterAll(() => shop.close());

const pathOf = (esimId: string): string => `/v1/esims/${esimId}/auto-topup`;

async function set(more: object = {}, api: HttpClient = buyer.live): Promise<void> {
  const body = {
    at_percent: 80,
    package_id: TOPUP_1GB_7D,
    max_times: 5,
    max_price: { amount: PRICE, currency: 'USD' },
    ...more,
  };
  const answer = await api.call('PUT', pathOf(buyer.esimId), { body });
  expect(answer.status, answer.text).toBe(200);
}

/** The provider reports that `percent` of the eSIM's data is used. */
async function use(percent: number): Promise<void> {
  await shop.use(buyer.esimId, percent);
}

/** The rule once no crossing waits and no top-up is open. */
async function settled(): Promise<Json> {
  await eventually('no crossing waits, and no top-up is open', async () => {
    const { rows } = await shop.database.pool.query(
      `SELECT FROM esim_auto_topups WHERE esim_id = $1 AND due_at IS NOT NULL
       UNION ALL SELECT FROM topups WHERE esim_id = $1 AND status IN ('pending', 'processing')`,
      [buyer.esimId],
    );
    return rows.length === 0;
  });
  return (await buyer.live.get(pathOf(buyer.esimId))).body.data as Json;
}

const setPrice = (amount: number): Promise<unknown> =>
  shop.database.pool.query(`UPDATE packages SET price_amount = $2 WHERE mode = 'live' AND id = $1`, [
    TOPUP_1GB_7D,
    amount,
  ]);

const rule = async (): Promise<Json> =>
  (await shop.database.pool.query<Json>('SELECT * FROM esim_auto_topups WHERE esim_id = $1', [buyer.esimId]))
    .rows[0]!;

/** Crosses the level while no provider sells the package, so that the crossing is postponed. */
async function crossWhileGone(): Promise<void> {
  const { pool } = shop.database;
  const move = async (from: string, to: string): Promise<void> => {
    await pool.query('UPDATE package_sources SET provider = $2 WHERE provider = $1', [from, to]);
    await pool.query('UPDATE esims SET provider = $2 WHERE provider = $1', [from, to]);
  };
  await move(shop.upstream.name, 'gone');
  await use(80);
  await eventually('the crossing is postponed', async () => (await rule())['due_at'] > new Date());
  await move('gone', shop.upstream.name);
}

const makeDue = (): Promise<unknown> =>
  shop.database.pool.query('UPDATE esim_auto_topups SET due_at = now() WHERE esim_id = $1', [buyer.esimId]);

describe('a live automatic top-up', () => {
  it('is charged like any other', async () => {
    await set();
    await use(80);
    expect(await settled()).toMatchObject({ times_used: 1, last_failure: null });
    expect(await balanceOf(buyer.live)).toEqual([DEPOSIT - PRICE, 0, DEPOSIT - PRICE]);
    const [charge] = (await buyer.live.get('/v1/transactions')).body.data as Json[];
    expect(charge).toMatchObject({ type: 'charge', amount: { amount: -PRICE } });
  });

  it('is not placed above max_price, and tries again at the next level', async () => {
    await set();
    await setPrice(PRICE + 1);
    await use(80);
    expect(await settled()).toMatchObject({ times_used: 0, last_failure: { code: 'price_changed' } });
    await setPrice(PRICE);
    await use(100);
    expect(await settled()).toMatchObject({ times_used: 1, last_failure: null });
    expect(await balanceOf(buyer.live)).toEqual([DEPOSIT - PRICE, 0, DEPOSIT - PRICE]);
  });

  it('is not placed when the wallet does not cover it', async () => {
    buyer = await shop.buyer(PRICE - 1);
    await set();
    await use(80);
    expect(await settled()).toMatchObject({
      status: 'active',
      times_used: 0,
      last_topup_id: null,
      last_failure: { code: 'insufficient_balance', reason: expect.any(String) as string },
    });
    expect(await balanceOf(buyer.live)).toEqual([PRICE - 1, 0, PRICE - 1]);
  });

  it('is not placed while the partner or the eSIM is suspended', async () => {
    await set();
    const act = (action: string): Promise<unknown> =>
      shop.office.admin.post(`/internal/v1/partners/${buyer.id}/${action}`);
    await act('suspend');
    await use(50);
    await use(80);
    await eventually('the crossing ends', async () => (await rule())['due_at'] === null);
    await act('reinstate');
    expect(await settled()).toMatchObject({ times_used: 0, last_failure: { code: 'partner_suspended' } });
    await shop.use(buyer.esimId, 100, 'suspended');
    expect(await settled()).toMatchObject({
      status: 'suspended',
      times_used: 0,
      last_failure: { code: 'esim_not_ready' },
    });
  });

  it('counts toward the spend limit of the key that set the rule', async () => {
    const answer = await shop.office.admin.post(`/internal/v1/partners/${buyer.id}/api-keys`, {
      mode: 'live',
      spend_limit: { amount: { amount: PRICE, currency: 'USD' }, per: 'day' },
    });
    const limited = shop.client(answer.body.data.key as string);
    await set({}, limited);
    await use(80);
    expect(await settled()).toMatchObject({ times_used: 1 });
    expect((await limited.get('/v1/me')).body.data.spend_limit.remaining.amount).toBe(0);
    await use(80);
    expect(await settled()).toMatchObject({ times_used: 1, last_failure: { code: 'spend_limit_reached' } });
    // A key without a limit takes the rule over.
    await set();
    await use(100);
    expect(await settled()).toMatchObject({ times_used: 2, last_failure: null });
  });

  it('is tried again later while the provider is not connected', async () => {
    await set();
    await crossWhileGone();
    await makeDue();
    expect(await settled()).toMatchObject({ times_used: 1, last_failure: null });
  });

  it('is not placed when the partner has topped up in the meantime', async () => {
    await set();
    await crossWhileGone();
    const { id } = await placeTopup(buyer.live, { esim_id: buyer.esimId, package_id: TOPUP_1GB_7D });
    expect(await topupEnded(buyer.live, id as string)).toMatchObject({ status: 'completed', auto: false });
    await makeDue();
    expect(await settled()).toMatchObject({ times_used: 0, last_failure: null });
  });

  it('is not placed for a level that is crossed while another one is open', async () => {
    await set();
    const { upstream } = shop;
    const { otherwise } = upstream;
    const isHeld = Promise.withResolvers<void>();
    upstream.otherwise = () => isHeld.promise.then(() => otherwise!());
    try {
      await use(80);
      await eventually('the first one is open', async () => (await rule())['due_at'] === null);
      await use(100);
      expect(await rule()).toMatchObject({ due_at: null });
    } finally {
      upstream.otherwise = otherwise;
      isHeld.resolve();
    }
    expect(await settled()).toMatchObject({ times_used: 1 });
    expect(await balanceOf(buyer.live)).toEqual([DEPOSIT - PRICE, 0, DEPOSIT - PRICE]);
  });

  it('gets the reference of the top-up that a restored database has lost', async () => {
    await set();
    await use(80);
    const { last_topup_id: id } = await settled();
    const { provider_reference: reference } = await shop.row(id as string);
    await shop.database.pool.query('DELETE FROM wallet_holds WHERE topup_id = $1', [id]);
    await shop.database.pool.query('DELETE FROM topups WHERE id = $1', [id]);
    await shop.database.pool.query(
      `UPDATE esims SET thresholds_crossed = '{}', total_bytes = total_bytes / 2 WHERE id = $1`,
      [buyer.esimId],
    );
    await use(80);
    const again = await shop.row((await settled())['last_topup_id'] as string);
    expect(again['provider_reference']).toBe(reference);
  });
});
