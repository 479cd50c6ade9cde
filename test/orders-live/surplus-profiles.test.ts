import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { eventually } from '../harness/index.js';
import type { Json } from '../harness/order-steps.js';
import { expectBooksToAddUp } from '../wallet/books.js';
import { balance, type LiveBuyer, LiveShop, place, PRICE, statement } from './live-shop.js';

let shop: LiveShop;
let buyer: LiveBuyer;

beforeAll(async () => {
  shop = await LiveShop.open();
  await shop.startWorker();
});

afterAll(() => shop.close());

beforeEach(async () => {
  buyer = await shop.buyer(2 * PRICE);
});

describe('more profiles than were ordered', () => {
  const alertsAbout = async (id: string): Promise<Json[]> =>
    (await shop.office.admin.get(`/internal/v1/alerts?subject_id=${id}`)).body.data as Json[];

  it('are not issued: the ordered number is charged, and an alert tells support of the rest', async () => {
    shop.liveProvider.script = [(order) => shop.liveProvider.provision(order, 3)];
    const { id } = await place(buyer, 2);
    const order = await shop.settled(buyer, id as string);
    expect(order).toMatchObject({ status: 'issued', quantity_issued: 2, refunded: { amount: 0 } });
    expect(order['esims']).toHaveLength(2);
    expect((await statement(buyer))[0]).toEqual(['charge', -2 * PRICE]);
    expect(await balance(buyer)).toEqual({ posted: 0, held: 0, available: 0 });
    expect(await alertsAbout(id as string)).toMatchObject([
      {
        type: 'order.needs_review',
        partner_id: buyer.id,
        details: { provider: 'stub', quantity: 2, provisioned: 3 },
      },
    ]);
    await expectBooksToAddUp(shop.database);
  });

  it('are cut off as well when support issues them', async () => {
    shop.liveProvider.script = [() => ({ state: 'in_progress', checkAfterMs: 3_600_000 })];
    const { id } = await place(buyer, 1);
    const { provider_reference: reference } = await eventually('it waits', async () => {
      const row = await shop.row(id as string);
      return row['status'] === 'processing' && row['lease_until'] === null ? row : null;
    });
    shop.liveProvider.provision({ reference: reference as string, quantity: 2 });
    const answer = await shop.office.admin.post(`/internal/v1/orders/${id}/reconcile`, {
      action: 'mark_issued',
      note: 'asked the wholesaler',
    });
    expect(answer.status, answer.text).toBe(200);
    expect(answer.body.data).toMatchObject({ status: 'issued', quantity_issued: 1 });
    expect(answer.body.data.esims).toHaveLength(1);
    expect((await statement(buyer))[0]).toEqual(['charge', -PRICE]);
    expect(await alertsAbout(id as string)).toMatchObject([{ details: { quantity: 1, provisioned: 2 } }]);
    await expectBooksToAddUp(shop.database);
  });
});
