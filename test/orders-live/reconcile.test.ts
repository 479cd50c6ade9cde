import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { ProviderOutcomeUnknown, ProviderUnavailable } from '../../src/providers/index.js';
import { type ApiAnswer, eventually } from '../harness/index.js';
import { expectProblem, invalidFields } from '../harness/expect-problem.js';
import { type Json, readFeed } from '../harness/order-steps.js';
import { expectBooksToAddUp } from '../wallet/books.js';
import { balance, type LiveBuyer, LiveShop, place, PRICE, statement } from './live-shop.js';

let shop: LiveShop;
let buyer: LiveBuyer;

beforeAll(async () => {
  shop = await LiveShop.open();
  await shop.startWorker();
  buyer = await shop.buyer(100 * PRICE);
});

afterAll(() => shop.close());

beforeEach(() => {
  shop.liveProvider.findError = null;
});

/** An order that its provider says nothing about. */
async function stuckOrder(quantity = 1): Promise<Json> {
  shop.liveProvider.script = [() => ({ state: 'in_progress', checkAfterMs: 3_600_000 })];
  const { id } = await place(buyer, quantity);
  return eventually(`order ${id} waits`, async () => {
    const row = await shop.row(id as string);
    return row['lease_until'] === null && row['status'] === 'processing' ? row : null;
  });
}

function reconcile(id: string, action: string, idempotencyKey = randomUUID()): Promise<ApiAnswer> {
  const body = { action, note: 'asked the wholesaler' };
  return shop.office.admin.post(`/internal/v1/orders/${id}/reconcile`, body, { idempotencyKey });
}

describe('reconcile', () => {
  it('requery has a worker ask at once', async () => {
    const order = await stuckOrder();
    shop.liveProvider.provision({ reference: order['provider_reference'] as string, quantity: 1 });
    const answer = await reconcile(order['id'] as string, 'requery');
    expect([answer.status, answer.body.data.id]).toEqual([200, order['id']]);
    expect(await shop.settled(buyer, order['id'] as string)).toMatchObject({ status: 'issued' });
  });

  it('mark_failed ends the order, releases its money, tells the partner, and is audited', async () => {
    const before = await balance(buyer);
    const order = await stuckOrder(3);
    expect((await balance(buyer)).held).toBe(before.held + 3 * PRICE);
    const answer = await reconcile(order['id'] as string, 'mark_failed');
    expect(answer.body.data).toMatchObject({
      status: 'failed',
      failure: { code: 'provider_unavailable' },
      refunded: { amount: 3 * PRICE },
    });
    expect(await balance(buyer)).toEqual(before);
    const events = (await readFeed(buyer.live)).filter((event) => event['data'].order_id === order['id']);
    expect(events.map((event) => event['type'] as string)).toEqual(['order.failed']);
    const audit = await shop.office.admin.get('/internal/v1/audit-log?action=order.reconciled&limit=1');
    expect(audit.body.data[0]).toMatchObject({
      subject_id: order['id'],
      partner_id: buyer.id,
      details: { action: 'mark_failed', note: 'asked the wholesaler' },
    });
    await expectBooksToAddUp(shop.database);
  });

  it('mark_issued issues what the provider names, and charges that', async () => {
    const charges = (await statement(buyer)).length;
    const order = await stuckOrder(3);
    shop.liveProvider.provision({ reference: order['provider_reference'] as string, quantity: 3 }, 2);
    const answer = await reconcile(order['id'] as string, 'mark_issued');
    expect(answer.status, answer.text).toBe(200);
    expect(answer.body.data).toMatchObject({ status: 'partially_issued', quantity_issued: 2 });
    expect(answer.body.data.esims).toHaveLength(2);
    expect((await statement(buyer)).slice(0, -charges)).toEqual([['charge', -2 * PRICE]]);
    await expectBooksToAddUp(shop.database);
  });

  it('mark_issued never issues without profiles: 409, also in the replay, and the order goes on', async () => {
    const order = await stuckOrder();
    const key = randomUUID();
    const refused = await reconcile(order['id'] as string, 'mark_issued', key);
    expectProblem(refused, 409, 'conflict');
    expect(await shop.row(order['id'] as string)).toMatchObject({
      status: 'processing',
      fence: order['fence'],
    });
    // A stored answer needs no provider, and neither does the refusal of a key that was used for another action.
    shop.liveProvider.findError = new ProviderOutcomeUnknown();
    const replayed = await reconcile(order['id'] as string, 'mark_issued', key);
    expect([replayed.status, replayed.text]).toEqual([409, refused.text]);
    const reused = await reconcile(order['id'] as string, 'mark_failed', key);
    expectProblem(reused, 422, 'idempotency_key_reused');
    shop.liveProvider.findError = null;
    shop.liveProvider.provision({ reference: order['provider_reference'] as string, quantity: 1 });
    expect((await reconcile(order['id'] as string, 'mark_issued', key)).text).toBe(refused.text);
    expect((await reconcile(order['id'] as string, 'mark_issued')).body.data.status).toBe('issued');
  });

  it('mark_issued is 503, and may be repeated, when the provider does not answer', async () => {
    const order = await stuckOrder();
    shop.liveProvider.findError = new ProviderOutcomeUnknown();
    expectProblem(await reconcile(order['id'] as string, 'mark_issued'), 503, 'service_unavailable');
    expect(await shop.row(order['id'] as string)).toMatchObject({ status: 'processing' });
    await reconcile(order['id'] as string, 'mark_failed');
  });

  it('mark_failed is 409 for what the provider has provisioned, and mark_issued then issues it', async () => {
    const held = (await balance(buyer)).held;
    const order = await stuckOrder();
    shop.liveProvider.provision({ reference: order['provider_reference'] as string, quantity: 1 });
    expectProblem(await reconcile(order['id'] as string, 'mark_failed'), 409, 'conflict');
    expect(await shop.row(order['id'] as string)).toMatchObject({
      status: 'processing',
      fence: order['fence'],
    });
    expect((await balance(buyer)).held).toBe(held + PRICE);
    expect((await reconcile(order['id'] as string, 'mark_issued')).body.data.status).toBe('issued');
    await expectBooksToAddUp(shop.database);
  });

  it('mark_failed is for support to decide when the provider gives no answer', async () => {
    const before = await balance(buyer);
    const order = await stuckOrder();
    shop.liveProvider.findError = new ProviderOutcomeUnknown();
    const answer = await reconcile(order['id'] as string, 'mark_failed');
    expect([answer.status, answer.body.data?.status], answer.text).toEqual([200, 'failed']);
    expect(await balance(buyer)).toEqual(before);
  });

  it('nothing is decided while the provider takes no calls: what it has was not asked', async () => {
    const order = await stuckOrder();
    shop.liveProvider.provision({ reference: order['provider_reference'] as string, quantity: 1 });
    shop.liveProvider.findError = new ProviderUnavailable(1_000);
    for (const action of ['mark_failed', 'mark_issued'])
      expectProblem(await reconcile(order['id'] as string, action), 503, 'service_unavailable');
    shop.liveProvider.findError = null;
    expect((await reconcile(order['id'] as string, 'mark_issued')).body.data.status).toBe('issued');
  });

  it('lets nobody fail an order while the provider is asked: what it answers counts', async () => {
    let answerUpstream!: () => void;
    const silence = new Promise<void>((resolve) => (answerUpstream = resolve));
    shop.liveProvider.script = [
      async (order) => {
        await silence;
        return shop.liveProvider.provision(order);
      },
    ];
    const before = await balance(buyer);
    const { id } = await place(buyer);
    const reference = (await shop.row(id as string))['provider_reference'] as string;
    await eventually('the worker is at it', () => shop.liveProvider.placementsOf(reference).length === 1);
    // What is being asked for right now is nobody's to fail.
    expectProblem(await reconcile(id as string, 'mark_failed'), 409, 'conflict');
    answerUpstream();
    expect(await shop.settled(buyer, id as string)).toMatchObject({ status: 'issued' });
    expect(await balance(buyer)).not.toEqual(before);
    await expectBooksToAddUp(shop.database);
  });

  it('refuses what has ended with 409, unknown orders with 404, and unknown actions with 400', async () => {
    const { id } = await place(buyer);
    await shop.settled(buyer, id as string);
    for (const action of ['requery', 'mark_failed', 'mark_issued']) {
      expectProblem(await reconcile(id as string, action), 409, 'conflict');
    }
    expectProblem(await reconcile('ord_01KAEXAMPLE0000000000000000', 'requery'), 404, 'not_found');
    expect(invalidFields(await reconcile(id as string, 'forget'))).toEqual(['/action']);
  });
});
