import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { eventually } from '../harness/index.js';
import { type Json, readFeed } from '../harness/order-steps.js';
import { expectBooksInOrder } from './books.js';
import { EsimAccessUpstream } from './esim-access-upstream.js';
import { buy, type Buyer, esimIdsOf, LiveShop, money, priceOf, settled, statement } from './shop.js';
import type { Upstream } from './upstream.js';
import { ZenditUpstream } from './zendit-upstream.js';

let shop: LiveShop;
let zendit: ZenditUpstream;
let esimAccess: EsimAccessUpstream;

beforeAll(async () => {
  [zendit, esimAccess] = await Promise.all([ZenditUpstream.start(), EsimAccessUpstream.start()]);
  shop = await LiveShop.open([zendit, esimAccess]);
});

afterEach(async () => {
  zendit.calmDown();
  esimAccess.calmDown();
  await expectBooksInOrder(shop);
  shop.buyers.splice(1);
});

afterAll(() => shop.close());

async function replace({ api }: Buyer, esimId: string): Promise<Json> {
  const answer = await api.post(`/v1/esims/${esimId}/replace`);
  expect(answer.status, answer.text).toBe(202);
  expect(answer.body.data).toMatchObject({ status: 'pending', replaces: esimId, quantity: 1 });
  return answer.body.data as Json;
}

async function esim({ api }: Buyer, id: string): Promise<Json> {
  return (await api.get(`/v1/esims/${id}`)).body.data as Json;
}

describe.each([
  ['Zendit', (): Upstream => zendit],
  ['eSIM Access', (): Upstream => esimAccess],
])('a replacement at %s', (_name, upstreamOf) => {
  let upstream: Upstream;
  let price: number;
  beforeEach(async () => {
    upstream = upstreamOf();
    price = await priceOf(shop.buyers[0]!, upstream.packageId);
  });

  it('needs no money beside the refund of the old eSIM', async () => {
    const buyer = await shop.buyer(price);
    const old = await buy(buyer, upstream.packageId);
    const [oldEsim] = esimIdsOf(old);
    const done = await settled(buyer, await replace(buyer, oldEsim!));
    expect(done).toMatchObject({ status: 'issued', total: { amount: price } });
    expect(await settled(buyer, old)).toMatchObject({ status: 'canceled', refunded: { amount: price } });
    expect(await esim(buyer, oldEsim!)).toMatchObject({ status: 'canceled', pending_action: null });
    expect(await esim(buyer, esimIdsOf(done)[0]!)).toMatchObject({ status: 'issued' });
    expect(await statement(buyer)).toEqual([
      ['deposit', price],
      ['charge', -price],
      ['refund', price],
      ['charge', -price],
    ]);
    const issued = (await readFeed(buyer.api)).filter(({ type }) => type === 'order.issued');
    expect(issued).toHaveLength(2);
  });

  it('does not announce once more that the wallet is low', async () => {
    const buyer = await shop.buyer(price);
    const body = { currency: 'USD', low_balance_amount: price };
    await shop.office.admin.call('PATCH', `/internal/v1/partners/${buyer.id}/wallet`, { body });
    const old = await buy(buyer, upstream.packageId);
    const lows = async (): Promise<number> => {
      await eventually('no signal waits', async () => {
        const { rows } = await shop.database.pool.query('SELECT 1 FROM wallet_low_signals');
        return rows.length === 0;
      });
      return (await readFeed(buyer.api)).filter(({ type }) => type === 'wallet.low').length;
    };
    expect(await lows()).toBe(1);
    await settled(buyer, await replace(buyer, esimIdsOf(old)[0]!));
    expect(await lows()).toBe(1);
  });

  it('leaves the old eSIM if it is in use, and costs nothing', async () => {
    const buyer = await shop.buyer(price);
    const old = await buy(buyer, upstream.packageId);
    const [id] = esimIdsOf(old);
    const row = await shop.row(id!);
    upstream.useEsim({ upstreamId: row['provider_esim_id'] as string, iccid: row['iccid'] as string });
    const done = await settled(buyer, await replace(buyer, id!));
    expect(done).toMatchObject({ status: 'failed', failure: { code: 'provider_rejected' }, esims: [] });
    expect(await settled(buyer, old)).toMatchObject({ status: 'issued', refunded: { amount: 0 } });
    expect(await esim(buyer, id!)).toMatchObject({
      pending_action: null,
      action_failure: { action: 'replace', code: 'provider_rejected' },
    });
    expect(await statement(buyer)).toEqual([
      ['deposit', price],
      ['charge', -price],
    ]);
  });

  it('leaves the refund if the new eSIM cannot be issued', async () => {
    const buyer = await shop.buyer(price);
    const [id] = esimIdsOf(await buy(buyer, upstream.packageId));
    upstream.runOutOfStock();
    const done = await settled(buyer, await replace(buyer, id!));
    expect(done).toMatchObject({ status: 'failed', failure: { code: 'package_unavailable' } });
    expect(await esim(buyer, id!)).toMatchObject({ status: 'canceled' });
    expect(await money(buyer)).toEqual([price, 0, price]);
  });
});
