import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { BOOK_CHECKS } from '../../src/reconciliation/index.js';
import { ProviderUnavailable } from '../../src/providers/index.js';
import { type ApiAnswer, eventually, type HttpClient } from '../harness/index.js';
import { expectProblem, invalidFields } from '../harness/expect-problem.js';
import { size } from '../harness/size.js';
import { type Json, orderEnded, placeOrder, readFeed } from '../harness/order-steps.js';
import {
  balance,
  type LiveBuyer,
  LiveShop,
  PACKAGE as LIVE_PACKAGE,
  place,
  PRICE,
  statement,
} from '../orders-live/live-shop.js';
import { breachesOf } from '../reconciliation/whole-books.js';
import { BASE } from '../topups/topup-steps.js';
import { expectBooksToAddUp } from '../wallet/books.js';

const ROUNDS = size('REFUND_RACES', 5, 20);

const usd = (amount: number): Json => ({ amount, currency: 'USD' });
const PATH = '/v1/refund-requests';
const ADMIN_PATH = '/internal/v1/refund-requests';
const IN_USE = { code: 'provider_rejected', reason: 'An eSIM is in use.' } as const;

let shop: LiveShop;
beforeAll(async () => {
  shop = await LiveShop.open();
  await shop.startWorker();
});
afterAll(() => shop.close());
afterEach(async () => {
  shop.liveProvider.cancelState = () => ({ state: 'canceled' });
  await expectBooksToAddUp(shop.database);
  for (const check of BOOK_CHECKS)
    if (check.severity === 'error')
      expect([check.check, await breachesOf(shop.database.pool, check, 3_600_000)]).toEqual([
        check.check,
        [],
      ]);
});

/** An issued live order with the ids of its eSIMs. */
interface Bought {
  readonly buyer: LiveBuyer;
  readonly orderId: string;
  readonly esimIds: readonly string[];
}

async function buy(quantity = 1, more: object = {}): Promise<Bought> {
  const buyer = await shop.buyer(quantity * PRICE);
  const { id } = await place(buyer, quantity, more);
  const order = await shop.settled(buyer, id as string);
  return { buyer, orderId: order['id'] as string, esimIds: idsOf(order) };
}

const idsOf = (order: Json): string[] => (order['esims'] as Json[]).map((esim) => esim['esim_id'] as string);

/** A busy machine may have no connection in time: the call then gets 503 or 429, and is repeated. */
async function patiently(call: () => Promise<ApiAnswer>): Promise<ApiAnswer> {
  const answer = await call();
  return answer.status === 503 || answer.status === 429 ? patiently(call) : answer;
}

async function request(api: HttpClient, esimId: string, more: object = {}): Promise<Json> {
  const answer = await patiently(() => api.post(PATH, { esim_id: esimId, reason: 'not_working', ...more }));
  expect(answer.status, answer.text).toBe(202);
  expect(answer.headers.get('location')).toBe(`${PATH}/${answer.body.data.id}`);
  return answer.body.data as Json;
}

const decide = (id: unknown, decision: 'approve' | 'reject', body: object = {}): Promise<ApiAnswer> =>
  patiently(() =>
    shop.office.admin.post(`${ADMIN_PATH}/${String(id)}/${decision}`, { note: 'decided', ...body }),
  );
const approve = (id: unknown, amount?: Json): Promise<ApiAnswer> =>
  decide(id, 'approve', amount ? { amount } : {});

async function approved(id: unknown, amount?: Json): Promise<Json> {
  const answer = await approve(id, amount);
  expect(answer.status, answer.text).toBe(200);
  return answer.body.data as Json;
}

const refundedOf = async ({ buyer, orderId }: Bought): Promise<number> =>
  (await buyer.live.get(`/v1/orders/${orderId}`)).body.data.refunded.amount as number;

describe('a refund request', () => {
  it('is pending until it is decided, and then shows amount and note', async () => {
    const bought = await buy();
    const { live } = bought.buyer;
    const details = 'No network in Lyon.';
    const pending = await request(live, bought.esimIds[0]!, { details });
    expect(pending).toEqual({
      id: expect.stringMatching(/^rfr_[0-9A-HJKMNP-TV-Z]{26}$/),
      mode: 'live',
      esim_id: bought.esimIds[0],
      order_id: bought.orderId,
      reason: 'not_working',
      details,
      status: 'pending',
      amount: null,
      note: null,
      decided_at: null,
      created_at: expect.any(String),
    });
    expect((await live.get(`${PATH}/${pending['id']}`)).body.data).toEqual(pending);
    await approved(pending['id'], usd(100));
    const decided = (await live.get(`${PATH}/${pending['id']}`)).body.data as Json;
    expect(decided).toEqual({
      ...pending,
      status: 'approved',
      amount: usd(100),
      note: 'decided',
      decided_at: expect.any(String),
    });
  });

  it('is one per eSIM while it is pending, however many are sent at once', async () => {
    const { buyer, esimIds } = await buy();
    const body = { esim_id: esimIds[0], reason: 'duplicate' };
    const answers = await Promise.all(
      Array.from({ length: 10 }, () => patiently(() => buyer.live.post(PATH, body))),
    );
    const [accepted, refused] = [202, 409].map((status) => answers.filter((each) => each.status === status));
    expect([accepted!.length, refused!.length]).toEqual([1, 9]);
    for (const answer of refused!) expectProblem(answer, 409, 'conflict');
    expect((await buyer.live.get(PATH)).body.data).toEqual([accepted![0]!.body.data]);
  });

  it('can be canceled while it is pending, and makes room for another, up to ten for an eSIM', async () => {
    const { buyer, esimIds } = await buy();
    for (let i = 0; i < 10; i++) {
      const { id } = await request(buyer.live, esimIds[0]!);
      const canceled = await patiently(() => buyer.live.post(`${PATH}/${id}/cancel`));
      expect([canceled.status, canceled.body.data.status]).toEqual([200, 'canceled']);
      expectProblem(await patiently(() => buyer.live.post(`${PATH}/${id}/cancel`)), 409, 'conflict');
      expectProblem(await approve(id), 409, 'conflict');
    }
    const more = await patiently(() => buyer.live.post(PATH, { esim_id: esimIds[0], reason: 'other' }));
    expectProblem(more, 409, 'limit_reached');
    expect(await statement(buyer)).toEqual([
      ['charge', -PRICE],
      ['deposit', PRICE],
    ]);
  });

  it('is listed by status and by eSIM, in pages', async () => {
    const { buyer, esimIds } = await buy(3);
    const ids: string[] = [];
    for (const esimId of esimIds) ids.unshift((await request(buyer.live, esimId))['id']);
    await decide(ids[0], 'reject');
    const list = async (query: string): Promise<unknown[]> =>
      ((await buyer.live.get(`${PATH}?${query}`)).body.data as Json[]).map(({ id }) => id);
    expect(await list('')).toEqual(ids);
    expect(await list('status=rejected')).toEqual([ids[0]]);
    expect(await list('status=pending')).toEqual(ids.slice(1));
    expect(await list(`esim_id=${esimIds[0]}`)).toEqual([ids[2]]);
    const first = (await buyer.live.get(`${PATH}?limit=2`)).body;
    expect([first.has_more, await list(`limit=2&cursor=${first.next_cursor}`)]).toEqual([true, [ids[2]]]);
    expect(invalidFields(await buyer.live.get(`${PATH}?status=open`))).toEqual(['?status']);
  });

  it('does not exist for another partner or mode, and neither does its eSIM', async () => {
    const { buyer, esimIds } = await buy();
    const { id } = await request(buyer.live, esimIds[0]!);
    const other = await shop.buyer(0);
    const sandbox = shop.api.partnerApi(await shop.office.createKey(buyer.id, 'sandbox'));
    for (const api of [other.live, sandbox]) {
      expectProblem(await api.get(`${PATH}/${id}`), 404, 'not_found');
      expectProblem(await api.post(`${PATH}/${id}/cancel`), 404, 'not_found');
      expectProblem(await api.post(PATH, { esim_id: esimIds[0], reason: 'other' }), 404, 'not_found');
      expect((await api.get(PATH)).body.data).toEqual([]);
    }
  });

  it('names every invalid field', async () => {
    const { live } = await shop.buyer(0);
    const answer = await live.post(PATH, { esim_id: '', reason: 'bored', details: 'x'.repeat(1_001) });
    expect(invalidFields(answer).toSorted()).toEqual(['/details', '/esim_id', '/reason']);
  });
});

describe('the decision on a refund request', () => {
  it('refunds by default what is left for the eSIM, in ledger, order and response', async () => {
    const bought = await buy(2);
    const first = await request(bought.buyer.live, bought.esimIds[0]!);
    await approved(first['id'], usd(100));
    const second = await request(bought.buyer.live, bought.esimIds[0]!);
    expect((await approved(second['id']))['amount']).toEqual(usd(PRICE - 100));
    expect(await statement(bought.buyer)).toEqual([
      ['refund', PRICE - 100],
      ['refund', 100],
      ['charge', -2 * PRICE],
      ['deposit', 2 * PRICE],
    ]);
    expect(await balance(bought.buyer)).toMatchObject({ posted: PRICE, available: PRICE });
    expect(await refundedOf(bought)).toBe(PRICE);
    const third = await bought.buyer.live.post(PATH, { esim_id: bought.esimIds[0], reason: 'other' });
    expectProblem(third, 409, 'conflict');
    expect(third.body.detail).toContain('Nothing is left to refund');
  });

  it('refuses more than is left, another currency, and less than 1', async () => {
    const bought = await buy();
    const { id } = await request(bought.buyer.live, bought.esimIds[0]!);
    const tooMuch = await approve(id, usd(PRICE + 1));
    expectProblem(tooMuch, 409, 'conflict');
    expect(tooMuch.body.detail).toContain(`Only ${PRICE} USD`);
    expect(invalidFields(await approve(id, { amount: 1, currency: 'EUR' }))).toEqual(['/amount/currency']);
    expect(invalidFields(await approve(id, usd(0)))).toEqual(['/amount/amount']);
    expect(invalidFields(await decide(id, 'approve', { note: null }))).toEqual(['/note']);
    expect(await refundedOf(bought)).toBe(0);
    await approved(id, usd(PRICE));
  });

  it('is final, and a rejection books nothing', async () => {
    const bought = await buy();
    const { id } = await request(bought.buyer.live, bought.esimIds[0]!);
    const rejected = await decide(id, 'reject', { note: 'It was used.' });
    expect(rejected.status, rejected.text).toBe(200);
    expect(rejected.body.data).toMatchObject({ status: 'rejected', amount: null, note: 'It was used.' });
    for (const decision of ['approve', 'reject'] as const)
      expectProblem(await decide(id, decision), 409, 'conflict');
    expect(await refundedOf(bought)).toBe(0);
  });

  it('is in the audit log with its author', async () => {
    const { buyer, esimIds } = await buy(2);
    const [one, other] = [await request(buyer.live, esimIds[0]!), await request(buyer.live, esimIds[1]!)];
    await approved(one['id'], usd(7));
    await decide(other['id'], 'reject');
    const { data } = (await shop.office.admin.get(`/internal/v1/audit-log?partner_id=${buyer.id}&limit=2`))
      .body;
    expect(data).toMatchObject([
      {
        action: 'refund_request.rejected',
        subject_id: other['id'],
        actor: 'portal',
        details: { esim_id: esimIds[1], note: 'decided' },
      },
      {
        action: 'refund_request.approved',
        subject_id: one['id'],
        details: { esim_id: esimIds[0], note: 'decided', amount: 7, currency: 'USD' },
      },
    ]);
  });

  it('is an event of its own, once for an approval and once for a rejection', async () => {
    const { buyer, orderId, esimIds } = await buy(2);
    const [one, other] = [await request(buyer.live, esimIds[0]!), await request(buyer.live, esimIds[1]!)];
    await Promise.all(Array.from({ length: 5 }, () => approve(one['id'], usd(7))));
    await decide(other['id'], 'reject');
    const withdrawn = await request(buyer.live, esimIds[1]!);
    await buyer.live.post(`${PATH}/${withdrawn['id']}/cancel`);
    const settled = await eventually('both are in the feed', async () => {
      const events = (await readFeed(buyer.live)).filter(({ type }) => type === 'refund.settled');
      return events.length >= 2 && events;
    });
    const data = { order_id: orderId };
    expect(settled.map((event) => event['data'] as Json)).toEqual([
      { ...data, refund_request_id: one['id'], esim_id: esimIds[0], status: 'approved', amount: usd(7) },
      { ...data, refund_request_id: other['id'], esim_id: esimIds[1], status: 'rejected', amount: null },
    ]);
  });

  it('is made from a list that shows the facts beside each request', async () => {
    const bought = await buy(2);
    const { id } = await request(bought.buyer.live, bought.esimIds[0]!);
    await shop.database.pool.query(
      `UPDATE esims SET status = 'active', profile_status = 'enabled', used_bytes = 5, activated_at = '2026-11-01Z',
         usage_as_of = '2026-11-02Z', read_at = '2026-11-03Z' WHERE id = $1`,
      [bought.esimIds[0]],
    );
    const found = async (): Promise<Json> => {
      const { data } = (await shop.office.admin.get(`${ADMIN_PATH}?status=pending&limit=1`)).body;
      return data[0] as Json;
    };
    expect(await found()).toMatchObject({
      id,
      partner_id: bought.buyer.id,
      status: 'pending',
      facts: {
        order_status: 'issued',
        package_id: LIVE_PACKAGE,
        esim_status: 'active',
        profile_status: 'enabled',
        activated_at: '2026-11-01T00:00:00.000Z',
        used_bytes: 5,
        as_of: '2026-11-02T00:00:00.000Z',
        read_at: '2026-11-03T00:00:00.000Z',
        captured: usd(PRICE),
        refunded: usd(0),
      },
    });
    const decided = await approved(id, usd(50));
    expect(decided['facts']).toMatchObject({ captured: usd(PRICE), refunded: usd(50) });
  });
});

describe('the refunds of an eSIM', () => {
  it('never exceed its price under 100 parallel approvals', async () => {
    const bought = await buy(10);
    const ids: string[] = [];
    for (const esimId of bought.esimIds) ids.push((await request(bought.buyer.live, esimId))['id']);
    const answers = await Promise.all(Array.from({ length: 100 }, (_, i) => approve(ids[i % 10])));
    const refused = answers.filter(({ status }) => status !== 200);
    for (const answer of refused) expectProblem(answer, 409, 'conflict');
    expect(refused).toHaveLength(90);
    expect(await refundedOf(bought)).toBe(10 * PRICE);
    expect(await balance(bought.buyer)).toMatchObject({ posted: 10 * PRICE });
  });

  it(`never exceed its price over many partial approvals beside a cancellation, in ${ROUNDS} rounds`, async () => {
    for (let round = 0; round < ROUNDS; round++) {
      const bought = await buy(3);
      const requests = [];
      for (const esimId of bought.esimIds) requests.push(await request(bought.buyer.live, esimId));
      const cancel = (): Promise<ApiAnswer> =>
        patiently(() => bought.buyer.live.post(`/v1/orders/${bought.orderId}/cancel`));
      const answers = await Promise.all([
        ...requests.map(({ id }) => approve(id, usd(PRICE - round))),
        cancel(),
        ...requests.map(({ id }) => approve(id, usd(PRICE))),
      ]);
      for (const { status, text } of answers) expect([200, 202, 409], text).toContain(status);
      expect(answers[3]!.status).toBe(202);
      const order = await shop.settled(bought.buyer, bought.orderId);
      expect(order).toMatchObject({ status: 'canceled', refunded: usd(3 * PRICE) });
      expect(await balance(bought.buyer)).toMatchObject({ posted: 3 * PRICE });
    }
  });

  it('are completed by a cancellation, and a canceled eSIM gets nothing more', async () => {
    const bought = await buy(2);
    const { id } = await request(bought.buyer.live, bought.esimIds[0]!);
    await approved(id, usd(100));
    const open = await request(bought.buyer.live, bought.esimIds[1]!);
    await bought.buyer.live.post(`/v1/orders/${bought.orderId}/cancel`);
    expect(await shop.settled(bought.buyer, bought.orderId)).toMatchObject({
      status: 'canceled',
      refunded: usd(2 * PRICE),
    });
    expect(await statement(bought.buyer)).toEqual([
      ['refund', 2 * PRICE - 100],
      ['refund', 100],
      ['charge', -2 * PRICE],
      ['deposit', 2 * PRICE],
    ]);
    const refused = await approve(open['id']);
    expectProblem(refused, 409, 'conflict');
    expect(refused.body.detail).toContain('Reject the request.');
    expect((await decide(open['id'], 'reject')).body.data.facts.refunded).toEqual(usd(PRICE));
  });

  it('follow a partial cancellation for the eSIMs that it left, and not for those that it canceled', async () => {
    const bought = await buy(2);
    shop.liveProvider.cancelState = ({ esims }) => ({
      state: 'partly_canceled',
      canceledEsimIds: esims.slice(0, 1).map((esim) => esim.providerEsimId),
      failure: IN_USE,
    });
    await bought.buyer.live.post(`/v1/orders/${bought.orderId}/cancel`);
    const order = await shop.settled(bought.buyer, bought.orderId);
    expect(order).toMatchObject({ status: 'issued', refunded: usd(PRICE) });
    const [canceled, left] = ['canceled', 'issued'].map(
      (status) => (order['esims'] as Json[]).find((esim) => esim['status'] === status)!['esim_id'] as string,
    );
    const refused = await bought.buyer.live.post(PATH, { esim_id: canceled, reason: 'other' });
    expectProblem(refused, 409, 'conflict');
    await approved((await request(bought.buyer.live, left!))['id']);
    expect(await refundedOf(bought)).toBe(2 * PRICE);
  });

  it('are possible for an eSIM that only its wholesaler canceled', async () => {
    const bought = await buy(2);
    await shop.database.pool.query(`UPDATE esims SET status = 'canceled' WHERE id = $1`, [bought.esimIds[0]]);
    const { id } = await request(bought.buyer.live, bought.esimIds[0]!);
    expect((await approved(id))['amount']).toEqual(usd(PRICE));
  });

  it('are returned to the spend limit of the key that bought it', async () => {
    const { id: owner } = await shop.buyer(2 * PRICE);
    const terms = { mode: 'live', spend_limit: { amount: usd(2 * PRICE), per: 'day' } };
    const key = await shop.office.admin.post(`/internal/v1/partners/${owner}/api-keys`, terms);
    const buyer = { id: owner, live: shop.api.partnerApi(key.body.data.key as string) };
    const order = await shop.settled(buyer, (await place(buyer, 2))['id'] as string);
    const remaining = async (): Promise<unknown> =>
      (await buyer.live.get('/v1/me')).body.data.spend_limit.remaining;
    expect(await remaining()).toEqual(usd(0));
    await approved((await request(buyer.live, idsOf(order)[0]!))['id'], usd(100));
    expect(await remaining()).toEqual(usd(100));
  });
});

describe('the money of a replaced eSIM', () => {
  it('is its refund, so an eSIM with an approved refund is not replaced', async () => {
    const { buyer, esimIds } = await buy(2);
    const [first, second] = esimIds;
    await approved((await request(buyer.live, first!))['id'], usd(100));
    expectProblem(await buyer.live.post(`/v1/esims/${first}/replace`), 409, 'not_supported');
    const actionsOf = async (id: string): Promise<unknown> =>
      (await buyer.live.get(`/v1/esims/${id}`)).body.data.actions;
    expect(await actionsOf(first!)).toEqual(['cancel']);
    expect(await actionsOf(second!)).toEqual(['cancel', 'replace']);
  });

  it('is not refunded by a request while the eSIM is being replaced', async () => {
    const { buyer, esimIds, orderId } = await buy();
    let isCanceled = false;
    shop.liveProvider.cancelState = () => {
      if (!isCanceled) throw new ProviderUnavailable(100);
      return { state: 'canceled' };
    };
    const { id } = await request(buyer.live, esimIds[0]!);
    const replacement = await buyer.live.post(`/v1/esims/${esimIds[0]}/replace`);
    expect(replacement.status, replacement.text).toBe(202);
    expectProblem(await approve(id), 409, 'conflict');
    isCanceled = true;
    await shop.database.pool.query('UPDATE orders SET next_attempt_at = now() WHERE id = $1', [orderId]);
    expect(await shop.settled(buyer, replacement.body.data.id as string)).toMatchObject({ status: 'issued' });
    expect(await balance(buyer)).toEqual({ posted: 0, held: 0, available: 0 });
    expectProblem(await approve(id), 409, 'conflict');
  });
});

describe('a refund request in Sandbox', () => {
  it('changes the order but no money', async () => {
    const { id: partnerId } = await shop.buyer(0);
    const sandbox = shop.api.partnerApi(await shop.office.createKey(partnerId, 'sandbox'));
    const { id: orderId } = await placeOrder(sandbox, { package_id: BASE });
    const order = await orderEnded(sandbox, orderId as string);
    const { id } = await request(sandbox, idsOf(order)[0]!);
    expect((await approved(id))['amount']).toEqual(order['unit_price']);
    expect((await sandbox.get(`/v1/orders/${orderId}`)).body.data).toMatchObject({
      refunded: order['unit_price'],
      version: (order['version'] as number) + 1,
    });
    expect((await sandbox.get('/v1/transactions')).body.data).toEqual([]);
    expect((await sandbox.post(`/v1/orders/${orderId}/cancel`)).status).toBe(202);
    const canceled = await eventually('the order is canceled', async () => {
      const { data } = (await sandbox.get(`/v1/orders/${orderId}`)).body;
      return data.status === 'canceled' ? (data as Json) : null;
    });
    expect(canceled['refunded']).toEqual(order['unit_price']);
  });
});
