import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import {
  type ApiAnswer,
  eventually,
  type HttpClient,
  startTestService,
  type TestService,
} from '../harness/index.js';
import { expectProblem, invalidFields } from '../harness/expect-problem.js';
import { type Json, postAtOnce } from '../harness/order-steps.js';
import { expectBooksToAddUp } from './books.js';

let service: TestService;
let partnerId: string;
let live: HttpClient;

beforeAll(async () => {
  service = await startTestService();
});

afterAll(() => service.stop());

beforeEach(async () => {
  ({ id: partnerId } = await service.createPartner());
  live = service.partnerApi(await service.createKey(partnerId, 'live'));
});

const wallet = (): string => `/internal/v1/partners/${partnerId}/wallet`;

function post(kind: 'deposits' | 'adjustments', amount: number, more: object = {}): Promise<ApiAnswer> {
  const body = { amount: { amount, currency: 'USD' }, reference: randomUUID(), ...more };
  return service.admin.post(`${wallet()}/${kind}`, body);
}

/** Low balances from the alerts, once the worker has processed every signal. */
async function signals(): Promise<number[]> {
  await eventually('every signal is an alert', async () => {
    const { rows } = await service.database.pool.query('SELECT 1 FROM wallet_low_signals');
    return rows.length === 0;
  });
  const { body } = await service.admin.get(`/internal/v1/alerts?type=balance.low&partner_id=${partnerId}`);
  return (body.data as { details: { available_amount: number } }[]).map(
    ({ details }) => details.available_amount,
  );
}

describe('a deposit or adjustment', () => {
  it('changes the balance of its currency, and appears on both statements, newest first', async () => {
    const deposit = await post('deposits', 10_000, { reference: 'inv-1', note: 'bank transfer' });
    expect(deposit.status, deposit.text).toBe(201);
    expect(deposit.body.data).toMatchObject({
      type: 'deposit',
      amount: { amount: 10_000, currency: 'USD' },
      balance_after: { amount: 10_000, currency: 'USD' },
      reference: 'inv-1',
      note: 'bank transfer',
      actor: 'portal',
      order_id: null,
    });
    await post('adjustments', -2_500, { reference: 'fix-1' });
    await post('deposits', 0, { amount: { amount: 700, currency: 'EUR' }, reference: 'inv-2' });
    expect((await live.get('/v1/balance')).body.data).toEqual([
      {
        currency: 'EUR',
        posted: { amount: 700, currency: 'EUR' },
        held: { amount: 0, currency: 'EUR' },
        available: { amount: 700, currency: 'EUR' },
      },
      {
        currency: 'USD',
        posted: { amount: 7_500, currency: 'USD' },
        held: { amount: 0, currency: 'USD' },
        available: { amount: 7_500, currency: 'USD' },
      },
    ]);
    const seen = (await live.get('/v1/transactions')).body.data as Json[];
    expect(seen.map((item) => [item['type'], item['amount'].amount, item['reference']])).toEqual([
      ['deposit', 700, 'inv-2'],
      ['adjustment', -2_500, 'fix-1'],
      ['deposit', 10_000, 'inv-1'],
    ]);
    expect(Object.keys(seen[0]!)).not.toContain('note');
    const ours = (await service.admin.get(`${wallet()}/transactions`)).body.data as Json[];
    expect(ours.map((item) => item['id'] as string)).toEqual(seen.map((item) => item['id'] as string));
    expect(ours[2]!['note']).toBe('bank transfer');
    await expectBooksToAddUp(service.database);
  });

  it('is listed page by page without a gap, and only for its partner and mode', async () => {
    for (let i = 1; i <= 5; i++) await post('deposits', i);
    const amounts: number[] = [];
    for (let query = '?limit=2'; query !== '';) {
      const page = (await live.get(`/v1/transactions${query}`)).body;
      amounts.push(...(page.data as Json[]).map((item) => item['amount'].amount as number));
      query = page.has_more ? `?limit=2&cursor=${page.next_cursor}` : '';
    }
    expect(amounts).toEqual([5, 4, 3, 2, 1]);
    const { next_cursor } = (await live.get('/v1/transactions?limit=2')).body;
    const other = await service.createPartner();
    const stranger = service.partnerApi(await service.createKey(other.id, 'live'));
    expect((await stranger.get('/v1/transactions')).body.data).toEqual([]);
    expect((await stranger.get('/v1/balance')).body.data).toEqual([]);
    expectProblem(await stranger.get(`/v1/transactions?cursor=${next_cursor}`), 400, 'invalid_cursor');
    const sandbox = service.partnerApi(await service.createKey(partnerId, 'sandbox'));
    expect((await sandbox.get('/v1/transactions')).body.data).toEqual([]);
    expectProblem(await sandbox.get(`/v1/transactions?cursor=${next_cursor}`), 400, 'invalid_cursor');
  });

  it('accepts a reference once per partner, across deposits and adjustments', async () => {
    await post('deposits', 100, { reference: 'once' });
    expectProblem(await post('deposits', 100, { reference: 'once' }), 409, 'reference_taken');
    expectProblem(await post('adjustments', 100, { reference: 'once' }), 409, 'reference_taken');
    expect((await live.get('/v1/balance')).body.data[0].posted.amount).toBe(100);
    const { id } = await service.createPartner();
    const elsewhere = await service.admin.post(`/internal/v1/partners/${id}/wallet/deposits`, {
      amount: { amount: 100, currency: 'USD' },
      reference: 'once',
    });
    expect(elsewhere.status).toBe(201);
  });

  it('is not lost among concurrent ones, and is booked once when its key is repeated', async () => {
    const answers = await Promise.all(Array.from({ length: 20 }, (_, i) => post('deposits', i + 1)));
    expect(new Set(answers.map((answer) => answer.status))).toEqual(new Set([201]));
    const body = { amount: { amount: 1_000, currency: 'USD' }, reference: 'same' };
    const repeats = await postAtOnce(service.admin, `${wallet()}/deposits`, body, 5);
    expect(new Set(repeats.map((answer) => answer.text)).size).toBe(1);
    expect((await live.get('/v1/balance')).body.data[0].posted.amount).toBe(210 + 1_000);
    await expectBooksToAddUp(service.database);
  });

  it('returns 409 when more than the available balance is taken, even from a wallet that does not exist', async () => {
    expectProblem(await post('adjustments', -1), 409, 'conflict');
    await post('deposits', 500);
    await service.database.pool.query(`UPDATE wallets SET held = 200 WHERE partner_id = $1`, [partnerId]);
    expectProblem(await post('adjustments', -301), 409, 'conflict');
    expect((await post('adjustments', -300)).status).toBe(201);
    expect((await live.get('/v1/balance')).body.data[0]).toMatchObject({
      posted: { amount: 200 },
      held: { amount: 200 },
      available: { amount: 0 },
    });
    await service.database.pool.query(`UPDATE wallets SET held = 0 WHERE partner_id = $1`, [partnerId]);
  });

  it('is refused with an invalid amount, and returns 404 for an unknown partner', async () => {
    expect(invalidFields(await post('deposits', 0))).toEqual(['/amount/amount']);
    expect(invalidFields(await post('deposits', -5))).toEqual(['/amount/amount']);
    expect(invalidFields(await post('deposits', 1.5))).toEqual(['/amount/amount']);
    expect(invalidFields(await post('adjustments', 0))).toEqual(['/amount/amount']);
    expect(invalidFields(await post('deposits', 5, { reference: null }))).toContain('/reference');
    expect(invalidFields(await post('deposits', 5, { amount: { amount: 5, currency: 'usd' } }))).toEqual([
      '/amount/currency',
    ]);
    partnerId = 'ptn_01KAEXAMPLE000000000000000';
    expectProblem(await post('deposits', 5), 404, 'not_found');
    expectProblem(await service.admin.get(wallet()), 404, 'not_found');
  });

  it('writes an audit entry with actor, amount and reason', async () => {
    const deposit = await post('deposits', 900, { reference: 'inv-9', note: 'cash' });
    const { data } = (await service.admin.get(`/internal/v1/audit-log?subject_id=${deposit.body.data.id}`))
      .body;
    expect(data).toHaveLength(1);
    expect(data[0]).toMatchObject({
      actor: 'portal',
      action: 'wallet.deposit',
      partner_id: partnerId,
      details: { amount: 900, currency: 'USD', reference: 'inv-9', note: 'cash' },
    });
  });
});

describe('the low-balance alert', () => {
  const setLow = (amount: number | null): Promise<ApiAnswer> =>
    service.admin.call('PATCH', wallet(), { body: { currency: 'USD', low_balance_amount: amount } });

  it('is raised each time that the available amount falls below the threshold', async () => {
    await post('deposits', 1_000);
    const set = await setLow(500);
    expect(set.body.data).toMatchObject({ currency: 'USD', low_balance_amount: 500, low_since: null });
    await post('adjustments', -500);
    expect(await signals()).toEqual([]);
    await post('adjustments', -1);
    await post('adjustments', -100);
    expect(await signals()).toEqual([499]);
    const [low] = (await service.admin.get(wallet())).body.data as Json[];
    expect(low).toMatchObject({ available: { amount: 399 }, low_balance_amount: 500 });
    expect(low!['low_since']).toEqual(expect.any(String));
    await post('deposits', 101);
    expect((await service.admin.get(wallet())).body.data[0].low_since).toBeNull();
    await post('adjustments', -200);
    expect(await signals()).toEqual([499, 300]);
  });

  it('is raised when a new threshold makes the wallet low, and never without a threshold', async () => {
    await post('deposits', 100);
    await setLow(101);
    await setLow(102);
    expect(await signals()).toEqual([100]);
    expect((await setLow(null)).body.data).toMatchObject({ low_balance_amount: null, low_since: null });
    await post('adjustments', -100);
    expect(await signals()).toEqual([100]);
    const absent = await service.admin.call('PATCH', wallet(), { body: { currency: 'USD' } });
    expect(invalidFields(absent)).toContain('/low_balance_amount');
  });

  it('does not block others when it cannot be stored, and is raised once it can (D43)', async () => {
    const { pool } = service.database;
    const refused = partnerId;
    await post('deposits', 100);
    await pool.query(
      `ALTER TABLE alerts ADD CONSTRAINT poisoned CHECK (partner_id <> '${refused}') NOT VALID`,
    );
    try {
      // More than one batch of the worker.
      await pool.query(
        `INSERT INTO wallet_low_signals (wallet_id, available)
         SELECT w.id, 5 FROM wallets w CROSS JOIN generate_series(1, 201) WHERE w.partner_id = $1`,
        [refused],
      );
      ({ id: partnerId } = await service.createPartner());
      await post('deposits', 200);
      await setLow(500);
      const path = `/internal/v1/alerts?type=balance.low&partner_id=${partnerId}`;
      await eventually('the other partner’s alert', async () => (await service.admin.get(path)).body.data[0]);
    } finally {
      await pool.query('ALTER TABLE alerts DROP CONSTRAINT poisoned');
    }
    expect(await signals()).toEqual([200]);
    partnerId = refused;
    expect(await signals()).toContain(5);
  });
});
