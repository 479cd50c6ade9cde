import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import {
  ProviderOutcomeUnknown,
  type ProviderTopupState,
  ProviderUnavailable,
} from '../../src/providers/index.js';
import { expectProblem, invalidFields } from '../harness/expect-problem.js';
import { type ApiAnswer, eventually } from '../harness/index.js';
import { type Json, readFeed } from '../harness/order-steps.js';
import { PRICE, ScriptedShop } from './scripted-shop.js';
import type { Answer } from './scripted-upstream.js';
import { DAY_MS, GB, TOPUP_1GB_7D, topupEnded } from './topup-steps.js';

let shop: ScriptedShop;
let stuck: StuckTopups;

beforeAll(async () => {
  // Review alerts are raised by every 15th sweep.
  shop = await ScriptedShop.open(100 * PRICE, { SWEEP_INTERVAL_MS: '50' });
  stuck = new StuckTopups(shop);
});

afterAll(() => shop.close());

const silence: Answer = () => Promise.reject(new ProviderOutcomeUnknown());
const unavailable: Answer = () => Promise.reject(new ProviderUnavailable(1_000));
const nothing: Answer = () => Promise.resolve(null);
const says =
  (state: ProviderTopupState): Answer =>
  () =>
    Promise.resolve(state);
const done = says({ state: 'completed', totalBytes: null, expiresAt: null });
const working = says({ state: 'in_progress', checkAfterMs: 50 });
const FAILURE = { code: 'package_unavailable', reason: 'Out of stock.' } as const;
const refused = says({ state: 'rejected', failure: FAILURE });

/** A response that the test releases. */
class HeldAnswer {
  isAsked = false;
  release!: () => void;
  private readonly held = new Promise<void>((resolve) => (this.release = resolve));

  answer(then: Answer): Answer {
    return async () => {
      this.isAsked = true;
      await this.held;
      return then();
    };
  }
}

interface Topup {
  readonly id: string;
  /** The reference in the provider's calls. */
  readonly reference: string;
}

/** Top-ups of the shop without a result from their provider, and support's actions on them. */
class StuckTopups {
  constructor(private readonly shop: ScriptedShop) {}

  async accepted(answers: readonly Answer[]): Promise<Topup> {
    const { id, providerReference: reference } = await this.shop.accept(answers);
    return { id, reference };
  }

  /** A top-up that was placed longer ago than the read lag, and that no worker processes again. */
  async topup(answer = silence): Promise<Topup> {
    const topup = await this.accepted(Array<Answer>(20).fill(answer));
    await eventually(`nothing was heard of ${topup.id}`, async () => {
      const { rowCount } = await this.shop.database.pool.query(
        `UPDATE topups SET next_attempt_at = now() + interval '1 hour',
           upstream_placed_at = upstream_placed_at - interval '1 minute'
         WHERE id = $1 AND last_error IS NOT NULL AND lease_until IS NULL`,
        [topup.id],
      );
      return rowCount === 1;
    });
    return topup;
  }

  /** Like `topup`, with this provider response from then on. */
  async topupThen(answer: Answer): Promise<Topup> {
    const topup = await this.topup();
    this.shop.upstream.script(topup.reference, Array<Answer>(5).fill(answer));
    return topup;
  }

  /** The default limit is fifteen minutes. */
  async backdate({ id }: Topup, minutes: number): Promise<void> {
    await this.shop.database.pool.query(
      `UPDATE topups SET created_at = now() - $2 * interval '1 minute' WHERE id = $1`,
      [id, minutes],
    );
  }

  reconcile({ id }: Topup, action: string, idempotencyKey = randomUUID()): Promise<ApiAnswer> {
    const body = { action, note: 'asked the wholesaler' };
    return this.shop.office.admin.post(`/internal/v1/topups/${id}/reconcile`, body, { idempotencyKey });
  }

  async esim(): Promise<Json> {
    return (await this.shop.live.get(`/v1/esims/${this.shop.esimId}`)).body.data as Json;
  }

  async totalBytes(): Promise<number> {
    return (await this.esim())['data'].total_bytes as number;
  }

  /** Everything that ending the top-up would change: status, lease, money and events. */
  async state(topup: Topup): Promise<unknown> {
    const [row, balance] = [await this.shop.row(topup.id), await this.shop.balance()];
    return { row, balance, events: await this.events(topup), charges: await this.charges(topup) };
  }

  async events({ id }: Topup): Promise<Json[]> {
    return (await readFeed(this.shop.live)).filter((event) => event['data'].topup_id === id);
  }

  /** The amounts of the top-up's transactions, in cents. */
  async charges({ id }: Topup): Promise<number[]> {
    const { rows } = await this.shop.database.pool.query<{ amount: string }>(
      'SELECT amount FROM ledger_transactions WHERE topup_id = $1',
      [id],
    );
    return rows.map(({ amount }) => Number(amount));
  }
}

async function listed(query = 'limit=100'): Promise<Json> {
  return (await shop.office.admin.get(`/internal/v1/topups/needs-review?${query}`)).body as Json;
}

describe('top-ups that need review', () => {
  it('lists top-ups that have been pending for too long, oldest first, with what support needs', async () => {
    const older = await stuck.topup();
    const younger = await stuck.topup(unavailable);
    expect((await listed())['data']).toEqual([]);
    await stuck.backdate(younger, 16);
    await stuck.backdate(older, 17);
    const { data } = await listed();
    const row = await shop.row(older.id);
    expect(data[0]).toEqual({
      topup_id: older.id,
      partner_id: shop.partnerId,
      mode: 'live',
      status: 'processing',
      reference: null,
      esim_id: shop.esimId,
      iccid: row['iccid'],
      package_id: TOPUP_1GB_7D,
      price: { amount: PRICE, currency: 'USD' },
      provider: shop.upstream.name,
      provider_reference: older.reference,
      upstream_package_id: 'TOPUP_UP_1',
      attempts: row['attempts'],
      last_error: 'ProviderOutcomeUnknown',
      since: (row['created_at'] as Date).toISOString(),
      upstream_placed_at: (row['upstream_placed_at'] as Date).toISOString(),
      next_attempt_at: (row['next_attempt_at'] as Date).toISOString(),
      request_id: 'req_test',
    });
    expect(data[1]).toMatchObject({
      topup_id: younger.id,
      last_error: 'ProviderUnavailable',
      upstream_placed_at: null,
    });

    const first = await listed('limit=1');
    expect([first['data'][0].topup_id, first['has_more']]).toEqual([older.id, true]);
    const next = await listed(`limit=1&cursor=${first['next_cursor']}`);
    expect(next).toMatchObject({ data: [{ topup_id: younger.id }], has_more: false, next_cursor: null });
    for (const topup of [older, younger])
      expect((await stuck.reconcile(topup, 'mark_failed')).status).toBe(200);
    expect((await listed())['data']).toEqual([]);
  });
});

describe('reconcile', () => {
  it('requery makes a worker query at once', async () => {
    const topup = await stuck.topupThen(done);
    const before = shop.upstream.callsFor(topup.reference).length;
    const answer = await stuck.reconcile(topup, 'requery');
    expect([answer.status, answer.body.data.id], answer.text).toEqual([200, topup.id]);
    expect(await topupEnded(shop.live, topup.id)).toMatchObject({ status: 'completed' });
    const asked = shop.upstream.callsFor(topup.reference).slice(before);
    expect(asked.map(({ call }) => call)).toEqual(['find']);
  });

  it.each(['mark_completed', 'mark_failed'])(
    '%s returns 503 while the provider refuses calls, because it was not queried',
    async (action) => {
      const topup = await stuck.topupThen(unavailable);
      const before = await stuck.state(topup);
      expectProblem(await stuck.reconcile(topup, action), 503, 'service_unavailable');
      expect(await stuck.state(topup)).toEqual(before);
      await shop.database.pool.query(`UPDATE topups SET next_attempt_at = now() + interval '1 day'
        WHERE status = 'processing'`);
    },
  );

  it('mark_completed lets support decide when the provider reports nothing', async () => {
    const [posted, held] = await shop.balance();
    const before = await stuck.esim();
    const topup = await stuck.topupThen(silence);
    expect(await shop.balance()).toEqual([posted, held + PRICE, posted - held - PRICE]);
    const ended = await stuck.reconcile(topup, 'mark_completed');
    expect(ended.status, ended.text).toBe(200);
    expect(ended.body.data).toMatchObject({ id: topup.id, status: 'completed', failure: null });
    expect(await shop.balance()).toEqual([posted - PRICE, held, posted - held - PRICE]);
    expect(await stuck.charges(topup)).toEqual([-PRICE]);
    expect(await stuck.totalBytes()).toBe(before['data'].total_bytes + GB);
    expect(await stuck.events(topup)).toMatchObject([
      {
        type: 'order.topup.completed',
        data: { esim_id: shop.esimId, data_added_bytes: GB, validity_added_days: 7 },
      },
    ]);
    expect(await shop.row(topup.id)).toMatchObject({ next_attempt_at: null, last_error: null });
    const audit = await shop.office.admin.get('/internal/v1/audit-log?action=topup.reconciled&limit=1');
    expect(audit.body.data[0]).toMatchObject({
      subject_id: topup.id,
      partner_id: shop.partnerId,
      details: { action: 'mark_completed', note: 'asked the wholesaler' },
    });
  });

  it("mark_completed applies the provider's figures", async () => {
    const totalBytes = (await stuck.totalBytes()) + 5 * GB;
    const expiresAt = new Date(Date.now() + 300 * DAY_MS);
    await shop.database.pool.query(
      `UPDATE esims SET status = 'active', activated_at = now(), expires_at = now() + interval '7 days' WHERE id = $1`,
      [shop.esimId],
    );
    const topup = await stuck.topupThen(says({ state: 'completed', totalBytes, expiresAt }));
    expect((await stuck.reconcile(topup, 'mark_completed')).body.data.status).toBe('completed');
    expect(await stuck.esim()).toMatchObject({
      expires_at: expiresAt.toISOString(),
      data: { total_bytes: totalBytes },
    });
  });

  it.each([
    ['does not respond', silence],
    ['certainly has not applied it', nothing],
  ])('mark_failed releases the money when the provider %s', async (_what, answer) => {
    const before = await shop.balance();
    const total = await stuck.totalBytes();
    const topup = await stuck.topupThen(answer);
    const ended = await stuck.reconcile(topup, 'mark_failed');
    expect(ended.body.data).toMatchObject({ status: 'failed', failure: { code: 'provider_unavailable' } });
    expect(await shop.balance()).toEqual(before);
    expect(await stuck.charges(topup)).toEqual([]);
    expect(await stuck.totalBytes()).toBe(total);
    expect(await stuck.events(topup)).toMatchObject([
      { type: 'order.topup.failed', data: { esim_id: shop.esimId, code: 'provider_unavailable' } },
    ]);
  });

  it("mark_failed records the provider's reason", async () => {
    const topup = await stuck.topupThen(refused);
    expect((await stuck.reconcile(topup, 'mark_failed')).body.data).toMatchObject({ failure: FAILURE });
    expect(await stuck.events(topup)).toMatchObject([{ data: { ...FAILURE } }]);
  });

  it.each([
    ['mark_failed', 'has applied it', done, 'The wholesaler has applied the top-up. Mark it completed.'],
    [
      'mark_completed',
      'does not have it',
      nothing,
      'The wholesaler has not applied the top-up. Mark it failed.',
    ],
    ['mark_completed', 'has refused it', refused, 'The wholesaler has rejected the top-up. Mark it failed.'],
    [
      'mark_failed',
      'works on it',
      working,
      'The wholesaler is still working on the top-up. Try again later.',
    ],
    [
      'mark_completed',
      'works on it',
      working,
      'The wholesaler is still working on the top-up. Try again later.',
    ],
  ])('%s returns 409 when the provider %s, and so does the replay', async (action, _what, answer, detail) => {
    const topup = await stuck.topupThen(answer);
    const before = await stuck.state(topup);
    const key = randomUUID();
    const refusal = await stuck.reconcile(topup, action, key);
    expectProblem(refusal, 409, 'conflict');
    expect(refusal.body.detail).toBe(detail);
    expect(await stuck.state(topup)).toEqual(before);
    shop.upstream.script(topup.reference, Array<Answer>(2).fill(silence));
    expect((await stuck.reconcile(topup, action, key)).text).toBe(refusal.text);
    expect((await stuck.reconcile(topup, 'mark_failed')).status).toBe(200);
  });

  it('mark_completed returns 409 for a top-up that was never sent, and mark_failed ends it', async () => {
    const topup = await stuck.topup(unavailable);
    expectProblem(await stuck.reconcile(topup, 'mark_completed'), 409, 'conflict');
    expect((await stuck.reconcile(topup, 'mark_failed')).body.data.status).toBe('failed');
  });

  it('lets support decide when the provider is no longer connected', async () => {
    const topup = await stuck.topup();
    await shop.database.pool.query(`UPDATE topups SET provider = 'gone' WHERE id = $1`, [topup.id]);
    expect((await stuck.reconcile(topup, 'mark_failed')).body.data.status).toBe('failed');
  });

  it('returns 409 for an ended top-up, 404 for an unknown top-up, and 400 for an unknown action', async () => {
    const topup = await stuck.topup();
    await stuck.reconcile(topup, 'mark_failed');
    for (const action of ['requery', 'mark_failed', 'mark_completed']) {
      expectProblem(await stuck.reconcile(topup, action), 409, 'conflict');
    }
    const unknown = { id: 'top_01KAEXAMPLE0000000000000000', reference: '' };
    for (const action of ['requery', 'mark_failed', 'mark_completed']) {
      expectProblem(await stuck.reconcile(unknown, action), 404, 'not_found');
    }
    expect(invalidFields(await stuck.reconcile(topup, 'forget'))).toEqual(['/action']);
  });
});

describe("a support decision during a worker's call", () => {
  it.each([
    ['mark_failed', nothing, { type: 'order.topup.failed', charged: [], added: 0 }],
    ['mark_completed', silence, { type: 'order.topup.completed', charged: [-PRICE], added: GB }],
  ])('makes the late result of a worker without its lease void after %s', async (...given) => {
    const [action, answer, { type, charged, added }] = given;
    const total = await stuck.totalBytes();
    const upstream = new HeldAnswer();
    const topup = await stuck.accepted([upstream.answer(done)]);
    await eventually('the worker is at it', () => upstream.isAsked);
    // Simulates a long pause of that worker: its lease has expired, and its heartbeat does not renew it.
    await shop.database.pool.query(
      `UPDATE topups SET lease_until = NULL, next_attempt_at = now() + interval '1 hour',
         upstream_placed_at = now() - interval '1 minute' WHERE id = $1`,
      [topup.id],
    );
    shop.upstream.script(topup.reference, [answer]);
    expect((await stuck.reconcile(topup, action)).status).toBe(200);
    upstream.release();
    // The worker has processed the response before the next top-up of this partner ends.
    const next = await stuck.accepted([done]);
    await topupEnded(shop.live, next.id);
    expect(await stuck.events(topup)).toMatchObject([{ type }]);
    expect(await stuck.charges(topup)).toEqual(charged);
    expect(await stuck.totalBytes()).toBe(total + added + GB);
  });

  it('settles the top-up once when support decides twice', async () => {
    const topup = await stuck.topupThen(silence);
    const answers = await Promise.all(
      ['mark_completed', 'mark_failed'].map((each) => stuck.reconcile(topup, each)),
    );
    expect(answers.map(({ status }) => status).sort()).toEqual([200, 409]);
    const [winner] = answers.filter(({ status }) => status === 200);
    expect(await stuck.events(topup)).toMatchObject([{ type: `order.topup.${winner!.body.data.status}` }]);
    expect(await stuck.charges(topup)).toEqual(winner!.body.data.status === 'completed' ? [-PRICE] : []);
  });
});
