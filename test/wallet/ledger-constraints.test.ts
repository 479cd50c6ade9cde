import { randomUUID } from 'node:crypto';
import type { PoolClient } from 'pg';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { createTestDatabase, type TestDatabase } from '../harness/index.js';
import { expectBooksToAddUp } from './books.js';

let database: TestDatabase;
let walletId: string;

beforeAll(async () => {
  database = await createTestDatabase();
});

afterAll(() => database.drop());

/** Plain SQL in one transaction, because the constraints must hold for any code. */
async function attempt(work: (client: PoolClient) => Promise<unknown>): Promise<string> {
  const client = await database.pool.connect();
  try {
    await client.query('BEGIN');
    await work(client);
    await client.query('COMMIT');
    return 'committed';
  } catch (error) {
    await client.query('ROLLBACK');
    return (error as { constraint?: string; message: string }).constraint ?? (error as Error).message;
  } finally {
    client.release();
  }
}

interface Entry {
  readonly account?: string;
  readonly amount: number;
  readonly currency?: string;
}

/** Writes a deposit of 500 to the wallet with the given entries. */
async function post(client: PoolClient, entries: readonly Entry[], amount = 500): Promise<string> {
  const id = `txn_${randomUUID()}`;
  await client.query(
    `INSERT INTO ledger_transactions (id, wallet_id, partner_id, currency, type, amount, balance_after, reference, actor,
       created_at)
     SELECT $1, w.id, w.partner_id, w.currency, 'deposit', $3, w.posted + $3, $1, 'test', clock_timestamp()
     FROM wallets w WHERE w.id = $2`,
    [id, walletId, amount],
  );
  for (const [seq, entry] of entries.entries()) {
    await client.query('INSERT INTO ledger_entries VALUES ($1, $2, $3, $4, $5)', [
      ...[id, seq + 1, entry.account ?? `partner_wallet:${walletId}`, entry.amount, entry.currency ?? 'USD'],
    ]);
  }
  await client.query('UPDATE wallets SET posted = posted + $2 WHERE id = $1', [walletId, amount]);
  return id;
}

const BALANCED: readonly Entry[] = [{ amount: 500 }, { amount: -500, account: 'cash:USD' }];

beforeEach(async () => {
  const partner = `ptn_${randomUUID()}`;
  await database.pool.query(`INSERT INTO partners (id, name, status) VALUES ($1, 'Books', 'active')`, [
    partner,
  ]);
  const { rows } = await database.pool.query<{ id: string }>(
    `INSERT INTO wallets (partner_id, currency) VALUES ($1, 'USD') RETURNING id`,
    [partner],
  );
  walletId = rows[0]!.id;
});

describe('a ledger transaction', () => {
  it('is accepted when its entries sum to 0 in its currency', async () => {
    expect(await attempt((client) => post(client, BALANCED))).toBe('committed');
    await expectBooksToAddUp(database);
  });

  it.each<[string, readonly Entry[]]>([
    ['its entries do not sum to 0', [{ amount: 500 }, { amount: -499, account: 'cash:USD' }]],
    ['it has only one side', [{ amount: 500 }]],
    ['it has no entries', []],
    [
      'its sides have different currencies',
      [{ amount: 500 }, { amount: -500, account: 'cash:EUR', currency: 'EUR' }],
    ],
    ['the wallet entry has another amount', [{ amount: 400 }, { amount: -400, account: 'cash:USD' }]],
    [
      'it does not touch the wallet',
      [
        { amount: 500, account: 'revenue:USD' },
        { amount: -500, account: 'cash:USD' },
      ],
    ],
  ])('cannot be committed when %s', async (_why, entries) => {
    expect(await attempt((client) => post(client, entries))).toBe('ledger_balances');
  });

  it('cannot be given another entry later', async () => {
    let id = '';
    await attempt(async (client) => (id = await post(client, BALANCED)));
    const late = await attempt((client) =>
      client.query(`INSERT INTO ledger_entries VALUES ($1, 3, 'revenue:USD', 1, 'USD')`, [id]),
    );
    expect(late).toBe('ledger_balances');
  });

  it.each([
    'UPDATE ledger_transactions SET amount = 1',
    'DELETE FROM ledger_transactions',
    'TRUNCATE ledger_transactions CASCADE',
    'UPDATE ledger_entries SET amount = amount',
    'DELETE FROM ledger_entries',
    'TRUNCATE ledger_entries',
  ])('cannot be changed: %s is refused', async (statement) => {
    await attempt((client) => post(client, BALANCED));
    expect(await attempt((client) => client.query(statement))).toBe('ledger_append_only');
  });
});

describe('a wallet', () => {
  it.each([
    ['spend more than it has', 'posted = -1', 'wallets_available'],
    ['hold more than it has', 'held = 1', 'wallets_available'],
    ['hold a negative amount', 'held = -1', 'wallets_held'],
  ])('cannot %s', async (_what, change, constraint) => {
    const refused = await attempt((client) =>
      client.query(`UPDATE wallets SET ${change} WHERE id = $1`, [walletId]),
    );
    expect(refused).toBe(constraint);
  });
});

describe('a hold', () => {
  const hold = (client: PoolClient, orderId: string): Promise<unknown> =>
    client.query(`INSERT INTO wallet_holds (wallet_id, order_id, amount) VALUES ($1, $2, 100)`, [
      walletId,
      orderId,
    ]);

  it('exists once per order', async () => {
    expect(await attempt((client) => hold(client, 'ord_a'))).toBe('committed');
    expect(await attempt((client) => hold(client, 'ord_a'))).toBe('wallet_holds_order');
    await database.pool.query('DELETE FROM wallet_holds');
  });

  it.each([
    [`status = 'captured', captured = 101, resolved_at = now()`, 'wallet_holds_captured'],
    [`status = 'captured', captured = 60, refunded = 61, resolved_at = now()`, 'wallet_holds_refunded'],
  ])('cannot release more than it has: %s', async (change, constraint) => {
    const refused = await attempt(async (client) => {
      await hold(client, 'ord_b');
      await client.query(`UPDATE wallet_holds SET ${change} WHERE order_id = 'ord_b'`);
    });
    expect(refused).toBe(constraint);
  });
});
