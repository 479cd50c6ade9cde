import { randomUUID } from 'node:crypto';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest';
import {
  ProviderOutcomeUnknown,
  type ProviderProfile,
  ProviderUnavailable,
} from '../../src/providers/index.js';
import { expectProblem, invalidFields } from '../harness/expect-problem.js';
import { type ApiAnswer, eventually, type HttpClient } from '../harness/index.js';
import { type Json, readFeed } from '../harness/order-steps.js';
import { expectBooksToAddUp } from '../wallet/books.js';
import { balance, type LiveBuyer, LiveShop, PACKAGE, place, PRICE, statement } from './live-shop.js';

let shop: LiveShop;
let desk: SupportDesk;
let buyer: LiveBuyer;

beforeAll(async () => {
  // Review alerts are raised by every 15th sweep.
  shop = await LiveShop.open({ SWEEP_INTERVAL_MS: '50' });
  desk = new SupportDesk(shop);
  await shop.startWorker();
});

afterAll(() => shop.close());

beforeEach(async () => {
  buyer = await shop.buyer(10 * PRICE);
});

afterEach(async () => {
  desk.calmUpstream();
  await expectBooksToAddUp(shop.database);
});

type Ending = 'mark_issued' | 'mark_failed';

/** Support's actions on orders of a shop, and the states that need them. */
class SupportDesk {
  constructor(private readonly shop: LiveShop) {}

  reconcile(id: string, action: string, idempotencyKey = randomUUID()): Promise<ApiAnswer> {
    const body = { action, note: 'asked the wholesaler' };
    return this.shop.office.admin.post(`/internal/v1/orders/${id}/reconcile`, body, { idempotencyKey });
  }

  /** The provider's current state of the order. */
  async look(id: string): Promise<Json> {
    const answer = await this.shop.office.admin.get(`/internal/v1/orders/${id}/upstream`);
    expect(answer.status, answer.text).toBe(200);
    return answer.body.data as Json;
  }

  /** Expects a refusal whose detail matches `why`, and no change. */
  async expectRefused(id: string, action: Ending, why: RegExp): Promise<void> {
    const before = await this.shop.row(id);
    const answer = await this.reconcile(id, action);
    expectProblem(answer, 409, 'conflict');
    expect(answer.body.detail).toMatch(why);
    const { status, fence } = await this.shop.row(id);
    expect({ status, fence }).toEqual({ status: before['status'], fence: before['fence'] });
  }

  async change(id: string, assignment: string): Promise<void> {
    await this.shop.database.pool.query(`UPDATE orders SET ${assignment} WHERE id = $1`, [id]);
  }

  /** Waits until no worker processes the order, now or later. */
  async atRest(id: string): Promise<Json> {
    await eventually(`order ${id} waits`, async () => {
      const { rowCount } = await this.shop.database.pool.query(
        `UPDATE orders SET next_attempt_at = now() + interval '1 hour'
         WHERE id = $1 AND lease_until IS NULL AND status IN ('processing', 'canceling') AND upstream_attempts > 0`,
        [id],
      );
      return rowCount === 1;
    });
    return this.shop.row(id);
  }

  /** Places an order whose provider reports no result. */
  async stuckOrder(buyer: LiveBuyer, quantity = 1): Promise<Json> {
    this.shop.liveProvider.script = [() => ({ state: 'in_progress', checkAfterMs: 3_600_000 })];
    const { id } = await place(buyer, quantity);
    return this.atRest(id as string);
  }

  /** Resets the provider, so that it responds to everything. */
  calmUpstream(): void {
    Object.assign(this.shop.liveProvider, { findError: null, readLagMs: 0, script: [] });
    this.shop.liveProvider.cancelState = () => ({ state: 'canceled' });
  }
}

async function eventsOf({ live }: LiveBuyer, id: string): Promise<Json[]> {
  return (await readFeed(live)).filter((event) => event['data'].order_id === id);
}

type Since = 'created_at' | 'cancel_requested_at';

async function stuckOrder(quantity = 1): Promise<string> {
  return (await desk.stuckOrder(buyer, quantity))['id'] as string;
}

async function issuedOrder(): Promise<string> {
  const { id } = await place(buyer);
  await shop.settled(buyer, id as string);
  return id as string;
}

/** Cancels an order while the provider does not respond. */
async function cancelInVain(id: string): Promise<void> {
  shop.liveProvider.cancelState = () => {
    throw new ProviderOutcomeUnknown();
  };
  expect((await buyer.live.post(`/v1/orders/${id}/cancel`)).status).toBe(202);
  await desk.atRest(id);
}

/** The default limit is fifteen minutes. */
function backdate(id: string, column: Since, minutes: number): Promise<void> {
  return desk.change(id, `${column} = now() - interval '${minutes} minutes'`);
}

async function listed(): Promise<Json[]> {
  return (await shop.office.admin.get('/internal/v1/orders/needs-review?limit=100')).body.data as Json[];
}

/** Waits until there are `count` alerts for the order, and returns them, oldest first. */
async function alertsAbout(id: string, count: number): Promise<Json[]> {
  return eventually(`${count} alerts about order ${id}`, async () => {
    const path = `/internal/v1/alerts?type=order.needs_review&subject_id=${id}`;
    const alerts = (await shop.office.admin.get(path)).body.data as Json[];
    return alerts.length >= count ? alerts.map((alert) => alert['details'] as Json) : null;
  });
}

/** The time as named in the alert. */
async function sinceOf(id: string, column: Since): Promise<string> {
  return ((await shop.row(id))[column] as Date).toISOString();
}

describe('orders that need review', () => {
  it('lists orders that have been pending for too long, oldest first, with what support needs', async () => {
    const [older, younger] = [await stuckOrder(), await stuckOrder(2)];
    expect(await listed()).toEqual([]);
    await backdate(younger, 'created_at', 16);
    await backdate(older, 'created_at', 17);
    const row = await shop.row(younger);
    const items = await listed();
    expect(items.map((item) => item['order_id'])).toEqual([older, younger]);
    expect(items[1]).toMatchObject({
      partner_id: buyer.id,
      mode: 'live',
      status: 'processing',
      package_id: PACKAGE,
      quantity: 2,
      total: { amount: 2 * PRICE, currency: 'USD' },
      provider: 'stub',
      provider_reference: row['provider_reference'],
      upstream_package_id: 'UP-1',
      upstream_attempts: 1,
      last_error: null,
      since: (row['created_at'] as Date).toISOString(),
      placed_at: (row['upstream_placed_at'] as Date).toISOString(),
    });

    const first = (await shop.office.admin.get('/internal/v1/orders/needs-review?limit=1')).body;
    expect([first.data[0].order_id, first.has_more]).toEqual([older, true]);
    const next = await shop.office.admin.get(
      `/internal/v1/orders/needs-review?limit=1&cursor=${first.next_cursor}`,
    );
    expect(next.body.data[0].order_id).toBe(younger);
    for (const id of [older, younger]) await desk.reconcile(id, 'mark_failed');
    expect(await listed()).toEqual([]);
  });

  it('includes cancellations, with the time of their request', async () => {
    const id = await issuedOrder();
    await backdate(id, 'created_at', 1_440);
    await cancelInVain(id);
    expect(await listed()).toEqual([]);
    await backdate(id, 'cancel_requested_at', 16);
    const [item] = await listed();
    expect(item).toMatchObject({ order_id: id, status: 'canceling', last_error: 'ProviderOutcomeUnknown' });
    shop.liveProvider.cancelState = () => ({ state: 'canceled' });
    expect((await desk.reconcile(id, 'requery')).status).toBe(200);
    expect(await shop.settled(buyer, id)).toMatchObject({ status: 'canceled' });
  });
});

/** The ids of the open alerts about an order. */
async function openAlertsAbout(id: string): Promise<string[]> {
  const path = `/internal/v1/alerts?type=order.needs_review&state=open&subject_id=${id}`;
  return ((await shop.office.admin.get(path)).body.data as Json[]).map((alert) => alert['id'] as string);
}

describe('a review alert', () => {
  it('is resolved by the decision of support, or after a worker has ended the order', async () => {
    const [decided, ended] = [await stuckOrder(), await stuckOrder()];
    for (const id of [decided, ended]) {
      await backdate(id, 'created_at', 16);
      await alertsAbout(id, 1);
      expect(await openAlertsAbout(id)).toHaveLength(1);
    }
    expect((await desk.reconcile(decided, 'mark_failed')).status).toBe(200);
    expect(await openAlertsAbout(decided)).toEqual([]);
    expect(await openAlertsAbout(ended)).toHaveLength(1);
    expect((await desk.reconcile(ended, 'requery')).status).toBe(200);
    await shop.settled(buyer, ended);
    await eventually('the alert is resolved', async () => (await openAlertsAbout(ended)).length === 0);
  });

  it('that reports a loss stays open after the order has ended', async () => {
    const row = await desk.stuckOrder(buyer);
    const id = row['id'] as string;
    shop.liveProvider.provision({ reference: row['provider_reference'] as string, quantity: 2 });
    expect((await desk.reconcile(id, 'mark_issued')).status).toBe(200);
    await backdate(id, 'created_at', 16);
    expect(await openAlertsAbout(id)).toHaveLength(1);
    const [other] = [await stuckOrder()];
    await shop.database.pool.query(
      `INSERT INTO alerts (id, type, partner_id, subject_id, details, created_at)
       VALUES ('alr_placed_again', 'order.needs_review', $1, $2, '{"what":"placed_again"}', now())`,
      [buyer.id, other],
    );
    await backdate(other, 'created_at', 16);
    await alertsAbout(other, 2);
    await shop.database.pool.query(`UPDATE orders SET status = 'failed' WHERE id = $1`, [other]);
    await eventually('a sweep passes', async () => (await openAlertsAbout(other)).length < 2);
    expect(await openAlertsAbout(id)).toHaveLength(1);
    expect(await openAlertsAbout(other)).toEqual(['alr_placed_again']);
    await shop.database.pool.query(`UPDATE orders SET status = 'processing' WHERE id = $1`, [other]);
    expect((await desk.reconcile(other, 'mark_failed')).status).toBe(200);
    expect(await openAlertsAbout(other)).toEqual([]);
  });

  it('is raised once for an order, and once for each of its hanging cancellations', async () => {
    const stuck = await stuckOrder();
    await backdate(stuck, 'created_at', 16);
    const id = await issuedOrder();
    const since: string[] = [];
    for (const minutes of [17, 16]) {
      await cancelInVain(id);
      await backdate(id, 'cancel_requested_at', minutes);
      since.push(await sinceOf(id, 'cancel_requested_at'));
      expect(await alertsAbout(id, since.length)).toEqual(
        since.map((each) => ({ status: 'canceling', provider: 'stub', since: each })),
      );
      expect((await desk.reconcile(id, 'mark_issued')).body.data.status).toBe('issued');
    }
    // Every sweep has retried this one.
    expect(await alertsAbout(stuck, 1)).toEqual([
      { status: 'processing', provider: 'stub', since: await sinceOf(stuck, 'created_at') },
    ]);
  });

  it('is raised for every other order when one cannot be stored (D43)', async () => {
    const [refused, other] = [await stuckOrder(), await stuckOrder()];
    const { pool } = shop.database;
    await pool.query(
      `ALTER TABLE alerts ADD CONSTRAINT poisoned CHECK (subject_id <> '${refused}') NOT VALID`,
    );
    try {
      await backdate(refused, 'created_at', 18);
      await backdate(other, 'created_at', 16);
      expect(await alertsAbout(other, 1)).toHaveLength(1);
      expect(await alertsAbout(refused, 0)).toEqual([]);
    } finally {
      await pool.query('ALTER TABLE alerts DROP CONSTRAINT poisoned');
    }
    expect(await alertsAbout(refused, 1)).toHaveLength(1);
  });
});

describe('reconcile', () => {
  it('requery makes a worker query at once', async () => {
    const order = await desk.stuckOrder(buyer);
    shop.liveProvider.provision({ reference: order['provider_reference'] as string, quantity: 1 });
    const answer = await desk.reconcile(order['id'] as string, 'requery');
    expect([answer.status, answer.body.data.id]).toEqual([200, order['id']]);
    expect(await shop.settled(buyer, order['id'] as string)).toMatchObject({ status: 'issued' });
  });

  it('mark_failed ends the order, releases its money, notifies the partner, and is audited', async () => {
    const before = await balance(buyer);
    const order = await desk.stuckOrder(buyer, 3);
    expect((await balance(buyer)).held).toBe(before.held + 3 * PRICE);
    const answer = await desk.reconcile(order['id'] as string, 'mark_failed');
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

  it('mark_issued never issues without profiles: it returns 409, even on a replay, and the order stays open', async () => {
    const order = await desk.stuckOrder(buyer);
    const key = randomUUID();
    const refused = await desk.reconcile(order['id'] as string, 'mark_issued', key);
    expectProblem(refused, 409, 'conflict');
    expect(await shop.row(order['id'] as string)).toMatchObject({
      status: 'processing',
      fence: order['fence'],
    });
    // Neither a stored response nor the refusal of a reused key needs the provider.
    shop.liveProvider.findError = new ProviderOutcomeUnknown();
    const replayed = await desk.reconcile(order['id'] as string, 'mark_issued', key);
    expect([replayed.status, replayed.text]).toEqual([409, refused.text]);
    const reused = await desk.reconcile(order['id'] as string, 'mark_failed', key);
    expectProblem(reused, 422, 'idempotency_key_reused');
    shop.liveProvider.findError = null;
    shop.liveProvider.provision({ reference: order['provider_reference'] as string, quantity: 1 });
    expect((await desk.reconcile(order['id'] as string, 'mark_issued', key)).text).toBe(refused.text);
    expect((await desk.reconcile(order['id'] as string, 'mark_issued')).body.data.status).toBe('issued');
  });

  it('mark_issued returns 503, and can be repeated, when the provider does not respond', async () => {
    const order = await desk.stuckOrder(buyer);
    shop.liveProvider.findError = new ProviderOutcomeUnknown();
    expectProblem(await desk.reconcile(order['id'] as string, 'mark_issued'), 503, 'service_unavailable');
    expect(await shop.row(order['id'] as string)).toMatchObject({ status: 'processing' });
    await desk.reconcile(order['id'] as string, 'mark_failed');
  });

  it('decides nothing while the provider refuses calls, because it was not queried', async () => {
    const order = await desk.stuckOrder(buyer);
    shop.liveProvider.provision({ reference: order['provider_reference'] as string, quantity: 1 });
    shop.liveProvider.findError = new ProviderUnavailable(1_000);
    for (const action of ['mark_failed', 'mark_issued'])
      expectProblem(await desk.reconcile(order['id'] as string, action), 503, 'service_unavailable');
    shop.liveProvider.findError = null;
    expect((await desk.reconcile(order['id'] as string, 'mark_issued')).body.data.status).toBe('issued');
  });

  it('does not fail an order while a worker queries the provider, whose result decides', async () => {
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
    // An order with a provider call in progress cannot be failed.
    expectProblem(await desk.reconcile(id as string, 'mark_failed'), 409, 'conflict');
    answerUpstream();
    expect(await shop.settled(buyer, id as string)).toMatchObject({ status: 'issued' });
    expect(await balance(buyer)).not.toEqual(before);
    await expectBooksToAddUp(shop.database);
  });

  it('returns 409 for an ended order, 404 for an unknown order, and 400 for an unknown action', async () => {
    const { id } = await place(buyer);
    await shop.settled(buyer, id as string);
    for (const action of ['requery', 'mark_failed', 'mark_issued']) {
      const answer = await desk.reconcile(id as string, action);
      expectProblem(answer, 409, 'conflict');
      expect(answer.body.detail).toContain('its status is issued');
    }
    expectProblem(await desk.reconcile('ord_01KAEXAMPLE0000000000000000', 'requery'), 404, 'not_found');
    expect(invalidFields(await desk.reconcile(id as string, 'forget'))).toEqual(['/action']);
  });
});

describe('support resolving a processing order', () => {
  async function stuckOrder(quantity: number): Promise<{ id: string; reference: string }> {
    const row = await desk.stuckOrder(buyer, quantity);
    return { id: row['id'] as string, reference: row['provider_reference'] as string };
  }

  function mint(quantity: number): readonly ProviderProfile[] {
    const state = shop.liveProvider.provision({ reference: 'not-an-order', quantity });
    return state.state === 'provisioned' ? state.profiles : [];
  }

  it('keeps the eSIMs that were bought: it issues the order in part and refunds the rest', async () => {
    const { id, reference } = await stuckOrder(3);
    const profiles = mint(2);
    shop.liveProvider.parts.set(reference, { profiles });
    expect(await desk.look(id)).toEqual({
      order_id: id,
      status: 'processing',
      answered: true,
      esims: profiles.map((profile) => ({
        provider_esim_id: profile.providerEsimId,
        standing: 'provisioned',
      })),
      running: 0,
      unusable: 0,
      actions: ['requery', 'mark_issued'],
    });
    await desk.expectRefused(id, 'mark_failed', /2 of 3 eSIMs are provisioned/);
    expect(await balance(buyer)).toMatchObject({ held: 3 * PRICE });
    const answer = await desk.reconcile(id, 'mark_issued');
    expect(answer.status, answer.text).toBe(200);
    expect(answer.body.data).toMatchObject({
      status: 'partially_issued',
      quantity_issued: 2,
      quantity_failed: 1,
      failure: { code: 'provider_unavailable' },
      refunded: { amount: PRICE },
      esims: { length: 2 },
    });
    expect(await balance(buyer)).toEqual({ posted: 8 * PRICE, held: 0, available: 8 * PRICE });
    expect((await statement(buyer))[0]).toEqual(['charge', -2 * PRICE]);
    expect(await eventsOf(buyer, id)).toMatchObject([
      { type: 'order.issued', data: { quantity_issued: 2, quantity_failed: 1 } },
    ]);
    const audit = await shop.office.admin.get('/internal/v1/audit-log?action=order.reconciled&limit=1');
    expect(audit.body.data[0].details.upstream).toBe('2 provisioned, 0 running, 0 unusable');
  });

  it("names the provider's reason for the missing part", async () => {
    const { id, reference } = await stuckOrder(2);
    const failure = { code: 'provider_rejected', reason: 'Taken back.' } as const;
    shop.liveProvider.parts.set(reference, { profiles: mint(1), failure });
    expect((await desk.reconcile(id, 'mark_issued')).body.data).toMatchObject({
      status: 'partially_issued',
      failure,
    });
  });

  it('is not possible while the provider works on a part of it', async () => {
    const { id, reference } = await stuckOrder(2);
    shop.liveProvider.parts.set(reference, { profiles: mint(1), running: 1 });
    expect(await desk.look(id)).toMatchObject({ running: 1, actions: ['requery'] });
    await desk.expectRefused(id, 'mark_issued', /1 of 2 eSIMs are provisioned, 1 in progress/);
    await desk.expectRefused(id, 'mark_failed', /1 of 2 eSIMs are provisioned, 1 in progress/);
    expect(await balance(buyer)).toMatchObject({ held: 2 * PRICE });
  });

  it('can fail an order when none of the sold eSIMs can be issued', async () => {
    const { id, reference } = await stuckOrder(1);
    shop.liveProvider.parts.set(reference, { unusable: 1 });
    expect(await desk.look(id)).toMatchObject({
      esims: [],
      unusable: 1,
      actions: ['requery', 'mark_failed'],
    });
    await desk.expectRefused(id, 'mark_issued', /has no eSIM/);
    expect((await desk.reconcile(id, 'mark_failed')).body.data).toMatchObject({ status: 'failed' });
  });

  it('waits until the provider must show the last placement, and pauses retries until then', async () => {
    const { id, reference } = await stuckOrder(2);
    shop.liveProvider.readLagMs = 60_000;
    await desk.change(id, `next_attempt_at = now() + interval '1 minute'`);
    await desk.expectRefused(id, 'mark_failed', /Try again in \d\d s/);
    shop.liveProvider.parts.set(reference, { profiles: mint(1) });
    await desk.expectRefused(id, 'mark_issued', /Try again in \d\d s/);
    const row = await shop.row(id);
    const rests = (row['next_attempt_at'] as Date).getTime() - (row['upstream_placed_at'] as Date).getTime();
    expect(rests, 'a retry would begin the time anew').toBe(180_000);
    await desk.change(id, `upstream_placed_at = now() - interval '61 seconds'`);
    expect((await desk.reconcile(id, 'mark_issued')).body.data).toMatchObject({ status: 'partially_issued' });
  });

  it('issues the order at once when every eSIM exists, and fails it at once when it was never placed', async () => {
    shop.liveProvider.readLagMs = 60_000;
    const whole = await stuckOrder(2);
    shop.liveProvider.parts.set(whole.reference, { profiles: mint(2) });
    expect((await desk.reconcile(whole.id, 'mark_issued')).body.data).toMatchObject({ status: 'issued' });
    const { id } = await stuckOrder(1);
    await desk.change(id, 'upstream_placed_at = NULL');
    expect((await desk.reconcile(id, 'mark_failed')).body.data).toMatchObject({ status: 'failed' });
  });

  it('shows the possible actions when the provider does not respond, and nothing once the order has ended', async () => {
    const { id } = await stuckOrder(1);
    shop.liveProvider.findError = new ProviderOutcomeUnknown();
    expect(await desk.look(id)).toMatchObject({
      answered: false,
      esims: [],
      actions: ['requery', 'mark_failed'],
    });
    await desk.reconcile(id, 'mark_failed');
    const path = (order: string) => `/internal/v1/orders/${order}/upstream`;
    expectProblem(await shop.office.admin.get(path(id)), 409, 'conflict');
    expectProblem(await shop.office.admin.get(path('ord_01KAEXAMPLE0000000000000000')), 404, 'not_found');
  });

  it('is refused when the result is older than the last work on the order', async () => {
    const { id } = await stuckOrder(1);
    const findParts = shop.liveProvider.findParts.bind(shop.liveProvider);
    vi.spyOn(shop.liveProvider, 'findParts').mockImplementationOnce(async (request) => {
      const parts = await findParts(request);
      // Meanwhile a worker claims it, places it and finishes.
      await desk.change(id, 'fence = fence + 1');
      return parts;
    });
    const outdated = await desk.reconcile(id, 'mark_failed');
    expectProblem(outdated, 409, 'conflict');
    expect(outdated.body.detail).toContain('A worker is querying the wholesaler');
    expect(await shop.row(id)).toMatchObject({ status: 'processing' });
    expect((await desk.reconcile(id, 'mark_failed')).body.data).toMatchObject({ status: 'failed' });
  });

  it('issues at most the ordered number of profiles, and an alert names the rest', async () => {
    const { id, reference } = await stuckOrder(1);
    shop.liveProvider.provision({ reference, quantity: 2 });
    const answer = await desk.reconcile(id, 'mark_issued');
    expect(answer.status, answer.text).toBe(200);
    expect(answer.body.data).toMatchObject({ status: 'issued', quantity_issued: 1 });
    expect(answer.body.data.esims).toHaveLength(1);
    expect((await statement(buyer))[0]).toEqual(['charge', -PRICE]);
    expect((await shop.office.admin.get(`/internal/v1/alerts?subject_id=${id}`)).body.data).toMatchObject([
      { details: { quantity: 1, provisioned: 2 } },
    ]);
  });
});

describe('support resolving a cancellation', () => {
  interface Hanging {
    readonly id: string;
    /** The provider's ids of its eSIMs. */
    readonly esims: readonly string[];
  }

  /** Creates an order whose cancellation gets no response from the provider. */
  async function hanging(quantity: number, issued = quantity): Promise<Hanging> {
    shop.liveProvider.script = [(order) => shop.liveProvider.provision(order, issued)];
    const { id } = await place(buyer, quantity);
    await shop.settled(buyer, id as string);
    shop.liveProvider.cancelState = () => {
      throw new ProviderOutcomeUnknown();
    };
    expect((await buyer.live.post(`/v1/orders/${id}/cancel`)).status).toBe(202);
    await desk.atRest(id as string);
    const { rows } = await shop.database.pool.query<{ provider_esim_id: string }>(
      'SELECT provider_esim_id FROM esims WHERE order_id = $1 ORDER BY id',
      [id],
    );
    return { id: id as string, esims: rows.map((row) => row.provider_esim_id) };
  }

  const statusesOf = (answer: ApiAnswer): string[] =>
    (answer.body.data.esims as Json[]).map((esim) => esim['status'] as string).sort();

  it('marks it as not done: the order is restored, and can be canceled again', async () => {
    const { id } = await hanging(2, 1);
    const answer = await desk.reconcile(id, 'mark_issued');
    expect(answer.body.data).toMatchObject({
      status: 'partially_issued',
      cancel_failure: { code: 'provider_unavailable' },
      refunded: { amount: PRICE },
    });
    expect(statusesOf(answer)).toEqual(['issued']);
    expect(await balance(buyer)).toEqual({ posted: 9 * PRICE, held: 0, available: 9 * PRICE });
    expect(await eventsOf(buyer, id)).toMatchObject([{ type: 'order.issued' }]);
    shop.liveProvider.cancelState = () => ({ state: 'canceled' });
    expect((await buyer.live.post(`/v1/orders/${id}/cancel`)).status).toBe(202);
    expect(await shop.settled(buyer, id)).toMatchObject({
      status: 'canceled',
      refunded: { amount: 2 * PRICE },
    });
  });

  it('marks it as done: the order is canceled and refunded, with one event', async () => {
    const { id } = await hanging(2);
    const answer = await desk.reconcile(id, 'mark_failed');
    expect(answer.body.data).toMatchObject({
      status: 'canceled',
      cancel_failure: null,
      refunded: { amount: 2 * PRICE },
    });
    expect(statusesOf(answer)).toEqual(['canceled', 'canceled']);
    expect(await balance(buyer)).toEqual({ posted: 10 * PRICE, held: 0, available: 10 * PRICE });
    expect((await statement(buyer))[0]).toEqual(['refund', 2 * PRICE]);
    expect(await eventsOf(buyer, id)).toMatchObject([{ type: 'order.issued' }, { type: 'order.canceled' }]);
    expect(await shop.row(id)).toMatchObject({ next_attempt_at: null, cancel_requested_at: null });
  });

  it('refuses to mark it as not done when the provider has taken the order back', async () => {
    const { id, esims } = await hanging(2);
    for (const esim of esims) shop.liveProvider.cancelStatuses.set(esim, 'canceled');
    await desk.expectRefused(id, 'mark_issued', /Mark it failed/);
    expect((await desk.reconcile(id, 'mark_failed')).body.data).toMatchObject({ status: 'canceled' });
  });

  it('refuses to mark it as done when an eSIM is in use, and refunds the eSIMs that were canceled', async () => {
    const { id, esims } = await hanging(2);
    shop.liveProvider.cancelStatuses.set(esims[0]!, 'in_use');
    shop.liveProvider.cancelStatuses.set(esims[1]!, 'canceled');
    expect(await desk.look(id)).toMatchObject({
      status: 'canceling',
      answered: true,
      esims: [
        { provider_esim_id: esims[0], standing: 'in_use' },
        { provider_esim_id: esims[1], standing: 'canceled' },
      ],
      actions: ['requery', 'mark_issued'],
    });
    await desk.expectRefused(id, 'mark_failed', /in use/);
    const answer = await desk.reconcile(id, 'mark_issued');
    expect(answer.body.data).toMatchObject({ status: 'issued', refunded: { amount: PRICE } });
    expect(statusesOf(answer)).toEqual(['canceled', 'issued']);
    expect((await statement(buyer))[0]).toEqual(['refund', PRICE]);
  });

  it('refuses to mark it as not done while the provider is processing it', async () => {
    const { id, esims } = await hanging(1);
    shop.liveProvider.cancelStatuses.set(esims[0]!, 'being_canceled');
    expect(await desk.look(id)).toMatchObject({ running: 1, actions: ['requery', 'mark_failed'] });
    await desk.expectRefused(id, 'mark_issued', /right now/);
    expect((await desk.reconcile(id, 'mark_failed')).body.data).toMatchObject({ status: 'canceled' });
  });

  it.each([
    ['mark_issued', 'issued'],
    ['mark_failed', 'canceled'],
  ] as const)('can decide either way when the provider does not respond: %s', async (action, status) => {
    const { id } = await hanging(1);
    shop.liveProvider.findError = new ProviderOutcomeUnknown();
    expect(await desk.look(id)).toMatchObject({
      answered: false,
      actions: ['requery', 'mark_issued', 'mark_failed'],
    });
    expect((await desk.reconcile(id, action)).body.data).toMatchObject({ status });
  });

  it('waits while a worker queries the provider, and for the read lag after its query', async () => {
    const { id } = await hanging(1);
    await desk.change(id, `lease_until = now() + interval '1 minute'`);
    const asked = vi.spyOn(shop.liveProvider, 'findCancelStatuses');
    for (const action of ['mark_issued', 'mark_failed'] as const)
      await desk.expectRefused(id, action, /A worker is querying the wholesaler/);
    expect(asked, 'what it said now would be older than what the worker hears').not.toHaveBeenCalled();
    asked.mockRestore();
    await desk.change(id, 'lease_until = NULL');
    shop.liveProvider.readLagMs = 60_000;
    await desk.expectRefused(id, 'mark_issued', /Try again in \d\d s/);
    await desk.change(id, `updated_at = now() - interval '61 seconds'`);
    expect((await desk.reconcile(id, 'mark_issued')).body.data).toMatchObject({ status: 'issued' });
  });

  it('needs no provider when no eSIM is left', async () => {
    const { id } = await hanging(1);
    await shop.database.pool.query(`UPDATE esims SET status = 'canceled' WHERE order_id = $1`, [id]);
    await desk.expectRefused(id, 'mark_failed', /Mark the order issued/);
    expect((await desk.reconcile(id, 'mark_issued')).body.data).toMatchObject({ status: 'issued' });
  });
});

describe('support resolving a Sandbox cancellation', () => {
  let sandbox: HttpClient;
  beforeEach(async () => {
    sandbox = shop.api.partnerApi(await shop.office.createKey(buyer.id, 'sandbox'));
  });

  /** Creates an issued order whose cancellation no worker has claimed. */
  async function waiting(): Promise<string> {
    const { id } = (await sandbox.post('/v1/orders', { package_id: 'pkg_fr_1gb_7d', quantity: 2 })).body.data;
    await eventually('it is issued', async () => (await shop.row(id as string))['status'] === 'issued');
    await desk.change(
      id as string,
      `status = 'canceling', status_before_cancel = 'issued', cancel_requested_at = now(),
       next_attempt_at = now() + interval '1 hour'`,
    );
    return id as string;
  }

  it('marks it as not done or as done', async () => {
    const [kept, gone] = [await waiting(), await waiting()];
    expect((await desk.reconcile(kept, 'mark_issued')).body.data).toMatchObject({
      status: 'issued',
      cancel_failure: { code: 'provider_unavailable' },
    });
    await shop.database.pool.query(
      `UPDATE sandbox_upstream_orders SET canceled_at = now()
       WHERE reference = (SELECT provider_reference FROM orders WHERE id = $1)`,
      [gone],
    );
    await desk.expectRefused(gone, 'mark_issued', /Mark it failed/);
    expect((await desk.reconcile(gone, 'mark_failed')).body.data).toMatchObject({ status: 'canceled' });
  });

  it('refuses to mark it as done when a device has an eSIM', async () => {
    const id = await waiting();
    await shop.database.pool.query(
      `UPDATE esims SET profile_status = 'installed'
       WHERE id = (SELECT id FROM esims WHERE order_id = $1 LIMIT 1)`,
      [id],
    );
    await desk.expectRefused(id, 'mark_failed', /in use/);
    expect((await desk.reconcile(id, 'mark_issued')).body.data).toMatchObject({ status: 'issued' });
  });
});
