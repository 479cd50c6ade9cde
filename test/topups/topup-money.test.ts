import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type ProviderTopupState } from '../../src/providers/index.js';
import { expectProblem } from '../harness/expect-problem.js';
import type { Json } from '../harness/order-steps.js';
import { PRICE, ScriptedShop } from './scripted-shop.js';
import { TOPUP_1GB_7D, TOPUP_DAYS, topupEnded } from './topup-steps.js';

const DEPOSIT = 1_000;
let shop: ScriptedShop;
let heldWhileAsked: number[];

beforeAll(async () => {
  shop = await ScriptedShop.open(DEPOSIT);
});

afterAll(() => shop.close());

async function accept(answer: ProviderTopupState): Promise<string> {
  const { id } = await shop.accept([
    async () => {
      heldWhileAsked = await shop.balance();
      return answer;
    },
  ]);
  return id;
}

describe('the price of a live top-up', () => {
  it('is held at acceptance and released when the top-up fails', async () => {
    const failure = { code: 'provider_rejected', reason: 'No.' } as const;
    const id = await accept({ state: 'rejected', failure });
    expect(await topupEnded(shop.live, id)).toMatchObject({ status: 'failed', failure });
    expect(heldWhileAsked).toEqual([DEPOSIT, PRICE, DEPOSIT - PRICE]);
    expect(await shop.balance()).toEqual([DEPOSIT, 0, DEPOSIT]);
  });

  it('is captured when the top-up completes, as a charge that names it', async () => {
    const id = await accept({ state: 'completed', totalBytes: null, expiresAt: null });
    expect(await topupEnded(shop.live, id)).toMatchObject({ status: 'completed', mode: 'live' });
    expect(heldWhileAsked).toEqual([DEPOSIT, PRICE, DEPOSIT - PRICE]);
    expect(await shop.balance()).toEqual([DEPOSIT - PRICE, 0, DEPOSIT - PRICE]);
    const [charge] = (await shop.live.get('/v1/transactions')).body.data as Json[];
    expect(charge).toMatchObject({ type: 'charge', topup_id: id, amount: { amount: -PRICE } });
  });

  it('keeps what it cost at the provider, and the name it was bought under', async () => {
    const { rows } = await shop.database.pool.query(
      'SELECT DISTINCT provider, upstream_package_id, unit_cost_micros::int, unit_cost_currency FROM topups',
    );
    expect(rows).toEqual([
      {
        provider: shop.upstream.name,
        upstream_package_id: 'TOPUP_UP_1',
        unit_cost_micros: 2_500_000,
        unit_cost_currency: 'USD',
      },
    ]);
  });

  it('that the wallet does not cover is refused, and no top-up is left', async () => {
    await shop.database.pool.query(
      `UPDATE packages SET price_amount = 10000 WHERE mode = 'live' AND id = $1`,
      [TOPUP_1GB_7D],
    );
    const before = (await shop.live.get('/v1/topups')).body.data as Json[];
    const refused = accept({ state: 'completed', totalBytes: null, expiresAt: null });
    await expect(refused).rejects.toMatchObject({ code: 'insufficient_balance', status: 402 });
    expect((await shop.live.get('/v1/topups')).body.data).toEqual(before);
    expect(await shop.balance()).toEqual([DEPOSIT - PRICE, 0, DEPOSIT - PRICE]);
  });
});

describe('a live top-up through the partner API', () => {
  const setAvailable = (id: string, available: boolean) =>
    shop.database.pool.query(`UPDATE packages SET available = $2 WHERE mode = 'live' AND id = $1`, [
      id,
      available,
    ]);

  it('of a package that another provider provides is neither offered nor taken', async () => {
    const offered = (await shop.live.get(`/v1/esims/${shop.esimId}/topup-packages`)).body.data as Json[];
    expect(offered.map((item) => item['id'])).toEqual([TOPUP_1GB_7D]);
    const request = { esim_id: shop.esimId, package_id: TOPUP_DAYS };
    const tooCheap = { ...request, max_price: { amount: 1, currency: 'USD' } };
    expectProblem(await shop.live.post('/v1/topups', request), 409, 'topup_not_supported');
    expectProblem(await shop.live.post('/v1/topups', tooCheap), 409, 'topup_not_supported');
    await setAvailable(TOPUP_DAYS, false);
    expectProblem(await shop.live.post('/v1/topups', request), 409, 'topup_not_supported');
  });

  it('of a package that fits and is not sold now is package_unavailable, whatever it may cost', async () => {
    const max_price = { amount: 1, currency: 'USD' };
    await setAvailable(TOPUP_1GB_7D, false);
    const request = { esim_id: shop.esimId, package_id: TOPUP_1GB_7D, max_price };
    expectProblem(await shop.live.post('/v1/topups', request), 409, 'package_unavailable');
    await setAvailable(TOPUP_1GB_7D, true);
    expectProblem(await shop.live.post('/v1/topups', request), 409, 'price_changed');
  });

  it('is 503 while its provider is not connected, and holds nothing', async () => {
    const before = await shop.balance();
    const answer = await shop.live.post('/v1/topups', { esim_id: shop.esimId, package_id: TOPUP_1GB_7D });
    expectProblem(answer, 503, 'service_unavailable');
    expect(await shop.balance()).toEqual(before);
  });
});
