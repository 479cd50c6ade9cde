import { Injectable } from '@nestjs/common';
import { InjectEntityManager } from '@nestjs/typeorm';
import { type EntityManager, In, IsNull, Not } from 'typeorm';
import { AppError } from '../common/errors/index.js';
import { newId } from '../common/ids.js';
import type { Money } from '../common/money.js';
import type { Page } from '../common/page.js';
import {
  KeysetPages,
  type ListOptions,
  sql,
  toSafeInteger,
  type Tx,
  violatedUniqueConstraint,
} from '../infra/database/index.js';
import { LedgerTransactionEntity, WalletEntity } from './wallet.entity.js';
import { CHANGED_WALLET, ledgerRows, lowSince, postedBy, SIGNAL_IF_LOW } from './wallet-sql.js';

/** A wallet that has become low. */
export interface LowSignal {
  readonly partnerId: string;
  readonly currency: string;
  /** Minor units at the time it became low. */
  readonly available: number;
  /** The wallet's current limit; null: none any more. */
  readonly threshold: number | null;
}

/** A manual movement by the portal team. */
export interface Posting {
  readonly type: 'deposit' | 'adjustment';
  readonly partnerId: string;
  /** Signed; the available amount never becomes negative. */
  readonly money: Money;
  readonly reference: string;
  readonly note: string | null;
  readonly actor: string;
}

/** A wallet at the end of one step of time, in minor units. */
export interface BalanceStep {
  readonly at: Date;
  /** The total, including held amounts. */
  readonly balance: number;
  /** The sum of the deposits and adjustments in this step. */
  readonly deposited: number;
}

/** The total of wallet `w` at a time: that after its last transaction before. Reads one row of the statement. */
const balanceAt = (time: string): string => `coalesce((
  SELECT t.balance_after FROM ledger_transactions t
  WHERE t.partner_id = w.partner_id AND t.currency = w.currency AND t.created_at < ${time}
  ORDER BY t.created_at DESC, t.id DESC LIMIT 1), 0)`;

/** Deposits and adjustments of wallet `w`: few, because people make them, and in an index of their own. */
const depositedBetween = (from: string, to: string): string => `coalesce((
  SELECT sum(t.amount) FROM ledger_transactions t
  WHERE t.partner_id = w.partner_id AND t.currency = w.currency AND t.type IN ('deposit', 'adjustment')
    AND t.created_at >= ${from} AND t.created_at < ${to}), 0)::bigint`;

/** Same as the table's constraint: readers treat amounts as safe integers. */
const MOST = 9_000_000_000_000_000;

const OPEN_WALLET = `
  INSERT INTO wallets (partner_id, currency) VALUES ($1, $2) ON CONFLICT (partner_id, currency) DO NOTHING`;

const postStatement = (type: Posting['type']): string => `
  WITH wallet AS (
    UPDATE wallets SET ${postedBy('$3::bigint')}, ${lowSince('posted - held + $3::bigint')}
    WHERE partner_id = $1 AND currency = $2 AND posted - held + $3::bigint >= 0 AND posted + $3::bigint <= ${MOST}
    RETURNING ${CHANGED_WALLET}
  ), ${ledgerRows({ type, id: '$4', amount: '$3::bigint', reference: '$5', note: '$6', actor: '$7' })},
  ${SIGNAL_IF_LOW}
  SELECT 1 FROM wallet`;

const POST = { deposit: postStatement('deposit'), adjustment: postStatement('adjustment') };

const SET_LOW_BALANCE = `
  WITH wallet AS (
    UPDATE wallets SET low_balance_amount = $3::bigint,
      low_since = CASE WHEN posted - held < $3::bigint THEN coalesce(low_since, now()) END
    WHERE partner_id = $1 AND currency = $2
    RETURNING ${CHANGED_WALLET}
  ), ${SIGNAL_IF_LOW}
  SELECT 1 FROM wallet`;

/** SQL of `wallets` and `ledger_transactions`, except holds. */
@Injectable()
export class WalletsRepository {
  constructor(
    @InjectEntityManager() private readonly manager: EntityManager,
    private readonly pages: KeysetPages,
  ) {}

  /** A partner's wallets, sorted by currency. */
  async listByPartner(partnerId: string): Promise<WalletEntity[]> {
    return this.manager.find(WalletEntity, { where: { partnerId }, order: { currency: 'ASC' } });
  }

  async get(tx: Tx, partnerId: string, currency: string): Promise<WalletEntity> {
    return tx.manager.findOneByOrFail(WalletEntity, { partnerId, currency });
  }

  /** Creates the wallet unless it exists. */
  async open(tx: Tx, partnerId: string, currency: string): Promise<void> {
    await sql(tx.manager, OPEN_WALLET, [partnerId, currency]);
  }

  /**
   * Posts money to an open wallet, with its transaction and entries. Returns null and writes nothing if the available
   * amount would become negative or the total too large.
   * @throws AppError `reference_taken`
   */
  async post(tx: Tx, posting: Posting): Promise<LedgerTransactionEntity | null> {
    const id = newId('txn');
    const { partnerId, money, reference, note, actor } = posting;
    try {
      const parameters = [partnerId, money.currency, money.amount, id, reference, note, actor];
      const { rows } = await sql(tx.manager, POST[posting.type], parameters);
      if (rows.length === 0) return null;
    } catch (error) {
      if (violatedUniqueConstraint(error) === 'ledger_transactions_reference')
        throw new AppError('reference_taken');
      throw error;
    }
    return tx.manager.findOneByOrFail(LedgerTransactionEntity, { id });
  }

  /** Sets the amount below which an open wallet counts as low; null: never. */
  async setLowBalance(tx: Tx, partnerId: string, currency: string, amount: number | null): Promise<void> {
    await sql(tx.manager, SET_LOW_BALANCE, [partnerId, currency, amount]);
  }

  /** The wallet in `steps` steps of `stepSeconds`, of which the last has begun. Steps begin in UTC. */
  async listBalances(
    { id }: Pick<WalletEntity, 'id'>,
    steps: number,
    stepSeconds: number,
  ): Promise<readonly BalanceStep[]> {
    const { rows } = await sql<{ at: Date; balance: string; deposited: string }>(
      this.manager,
      `SELECT s.at, ${balanceAt('s.at + b.step')} AS balance, ${depositedBetween('s.at', 's.at + b.step')} AS deposited
       FROM wallets w
       CROSS JOIN (SELECT $3::int * interval '1 second' AS step,
                          date_bin($3::int * interval '1 second', statement_timestamp(), 'epoch') AS newest) AS b
       CROSS JOIN generate_series(b.newest - ($2::int - 1) * b.step, b.newest, b.step) AS s (at)
       WHERE w.id = $1 ORDER BY s.at`,
      [id, steps, stepSeconds],
    );
    return rows.map((row) => ({
      at: row.at,
      balance: toSafeInteger(row.balance),
      deposited: toSafeInteger(row.deposited),
    }));
  }

  /**
   * Average spending per day in minor units: charges without refunds of the last `days`, or since the wallet was opened
   * if that is later, but at least one day.
   */
  async getDailySpending({ id }: Pick<WalletEntity, 'id'>, days: number): Promise<number> {
    const { rows } = await sql<{ spent: string; days: number }>(
      this.manager,
      `SELECT ${balanceAt('s.since')} + ${depositedBetween('s.since', `'infinity'`)} - w.posted AS spent,
              greatest(extract(epoch FROM statement_timestamp() - s.since) / 86400, 1)::float8 AS days
       FROM wallets w
       CROSS JOIN LATERAL (
         SELECT greatest(w.created_at, statement_timestamp() - $2::int * interval '1 day') AS since
       ) AS s
       WHERE w.id = $1`,
      [id, days],
    );
    const [row] = rows;
    return row ? Math.max(0, Math.round(toSafeInteger(row.spent) / row.days)) : 0;
  }

  /** The partner's statement, newest first. */
  async listTransactions(partnerId: string, options: ListOptions): Promise<Page<LedgerTransactionEntity>> {
    const query = this.manager
      .createQueryBuilder(LedgerTransactionEntity, 't')
      .where('t.partner_id = :partnerId', { partnerId });
    return this.pages.list(query, options);
  }

  /** The low-balance thresholds of partners, by partner and then by currency. */
  async listLowBalances(
    partnerIds: readonly string[],
    tx?: Tx,
  ): Promise<ReadonlyMap<string, readonly Money[]>> {
    const wallets = await (tx?.manager ?? this.manager).find(WalletEntity, {
      where: { partnerId: In([...partnerIds]), lowBalanceAmount: Not(IsNull()) },
      order: { currency: 'ASC' },
    });
    const byPartner = Map.groupBy(wallets, ({ partnerId }) => partnerId);
    return new Map(
      [...byPartner].map(([partnerId, own]) => [
        partnerId,
        own.map(({ lowBalanceAmount, currency }) => ({ amount: lowBalanceAmount!, currency })),
      ]),
    );
  }

  /** Since when the partners' wallets have been low, by partner and currency as `<id> <currency>`. */
  async listLowSince(partnerIds: readonly string[]): Promise<ReadonlyMap<string, Date>> {
    const low = await this.manager.findBy(WalletEntity, {
      partnerId: In([...new Set(partnerIds)]),
      lowSince: Not(IsNull()),
    });
    return new Map(low.map(({ partnerId, currency, lowSince }) => [`${partnerId} ${currency}`, lowSince!]));
  }

  /** Ids of low-balance signals after `after`, in id order. */
  async listLowSignals(after: string, limit: number): Promise<readonly string[]> {
    const { rows } = await sql<{ id: string }>(
      this.manager,
      'SELECT id FROM wallet_low_signals WHERE id > $1 ORDER BY id LIMIT $2',
      [after, limit],
    );
    return rows.map(({ id }) => id);
  }

  /** Deletes and returns these signals, except those locked by another worker. The caller raises an alert for each. */
  async takeLowSignals(tx: Tx, ids: readonly string[]): Promise<readonly LowSignal[]> {
    const { rows } = await sql<{
      partner_id: string;
      currency: string;
      available: string;
      low_balance_amount: string | null;
    }>(
      tx.manager,
      `WITH taken AS (
         DELETE FROM wallet_low_signals
         WHERE id = ANY (ARRAY(SELECT id FROM wallet_low_signals WHERE id = ANY ($1::bigint[])
                               FOR UPDATE SKIP LOCKED))
         RETURNING id, wallet_id, available
       )
       SELECT w.partner_id, w.currency, t.available, w.low_balance_amount FROM taken t JOIN wallets w ON w.id = t.wallet_id ORDER BY t.id`,
      [ids],
    );
    return rows.map((row) => ({
      partnerId: row.partner_id,
      currency: row.currency,
      available: toSafeInteger(row.available),
      threshold: row.low_balance_amount === null ? null : toSafeInteger(row.low_balance_amount),
    }));
  }
}
