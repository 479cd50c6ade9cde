import { Injectable } from '@nestjs/common';
import { newId } from '../common/ids.js';
import type { Money } from '../common/money.js';
import { prepared, sql, type Tx } from '../infra/database/index.js';
import {
  CHANGED_WALLET,
  type ChargeSubject,
  ledgerRows,
  lowSince,
  postedBy,
  SIGNAL_IF_LOW,
  type SubjectColumn,
  subjectOf,
} from './wallet-sql.js';

const HOLD = prepared(`
  WITH wallet AS (
    UPDATE wallets SET held = held + $3::bigint, ${lowSince('posted - held - $3::bigint')}
    WHERE partner_id = $1 AND currency = $2 AND posted - held >= $3::bigint
    RETURNING ${CHANGED_WALLET}
  ), hold AS (
    INSERT INTO wallet_holds (wallet_id, order_id, topup_id, reference, amount)
    SELECT id, $4, $5, $6, $3::bigint FROM wallet
  ), ${SIGNAL_IF_LOW}
  SELECT 1 FROM wallet`);

/**
 * Locks holds, then wallets, each in id order (D40). Updates a wallet's row once, however many of its holds end. Its
 * transactions still look sequential: each is later than the previous one and continues from its balance. Returns the
 * subjects of captures that were never held.
 */
const settleStatement = (column: string): string => `
  WITH wanted AS (
    SELECT * FROM unnest($1::text[], $2::bigint[], $3::text[]) AS s (subject_id, captured, transaction_id)
  ), active AS (
    SELECT h.id, w.captured, w.transaction_id FROM wanted w
    JOIN wallet_holds h ON h.${column} = w.subject_id AND h.status = 'active'
    ORDER BY h.id FOR NO KEY UPDATE OF h
  ), hold AS (
    UPDATE wallet_holds h
    SET status = CASE WHEN a.captured > 0 THEN 'captured' ELSE 'released' END, captured = a.captured, resolved_at = now()
    FROM active a WHERE h.id = a.id
    RETURNING h.wallet_id, h.order_id, h.topup_id, h.reference, h.amount, a.captured, a.transaction_id
  ), total AS (
    SELECT wallet_id, sum(amount)::bigint AS amount, sum(captured)::bigint AS captured,
           count(*) FILTER (WHERE captured > 0) AS charges
    FROM hold GROUP BY wallet_id
  ), locked AS (
    SELECT w.id, t.amount, t.captured, t.charges FROM total t JOIN wallets w ON w.id = t.wallet_id
    ORDER BY w.id FOR NO KEY UPDATE OF w
  ), wallet AS (
    UPDATE wallets
    SET held = held - t.amount,
        posted = posted - t.captured,
        last_posted_at = CASE WHEN t.charges = 0 THEN last_posted_at
          ELSE greatest(clock_timestamp(), last_posted_at + t.charges * interval '1 microsecond') END,
        ${lowSince('posted - held - t.captured + t.amount')}
    FROM locked t WHERE wallets.id = t.id
    RETURNING wallets.id, wallets.partner_id, wallets.currency, wallets.posted, wallets.last_posted_at
  ), charge AS (
    SELECT hold.*, coalesce(sum(captured) OVER later, 0) AS captured_later, count(*) OVER later AS charged_later
    FROM hold WHERE captured > 0
    WINDOW later AS (PARTITION BY wallet_id ORDER BY transaction_id ROWS BETWEEN 1 FOLLOWING AND UNBOUNDED FOLLOWING)
  ), txn AS (
    INSERT INTO ledger_transactions (id, wallet_id, partner_id, currency, type, amount, balance_after, order_id,
                                     topup_id, reference, created_at)
    SELECT c.transaction_id, w.id, w.partner_id, w.currency, 'charge', -c.captured, w.posted + c.captured_later,
           c.order_id, c.topup_id, c.reference, w.last_posted_at - c.charged_later * interval '1 microsecond'
    FROM charge c JOIN wallet w ON w.id = c.wallet_id
  ), entries AS (
    INSERT INTO ledger_entries (transaction_id, seq, account, amount, currency)
    SELECT c.transaction_id, side.seq, side.account, side.amount, w.currency
    FROM charge c JOIN wallet w ON w.id = c.wallet_id, LATERAL (VALUES
      (1, 'partner_wallet:' || w.id, -c.captured),
      (2, 'revenue:' || w.currency, c.captured)) AS side (seq, account, amount)
  )
  SELECT w.subject_id FROM wanted w
  WHERE w.captured > 0 AND NOT EXISTS (SELECT 1 FROM wallet_holds h WHERE h.${column} = w.subject_id)`;

const refundStatement = (column: string): string => `
  WITH hold AS (
    UPDATE wallet_holds SET refunded = refunded + $2::bigint
    WHERE ${column} = $1 AND status = 'captured' AND refunded + $2::bigint <= captured
    RETURNING wallet_id, order_id, topup_id, reference
  ), wallet AS (
    UPDATE wallets SET ${postedBy('$2::bigint')}, ${lowSince('posted - held + $2::bigint', '$4::boolean')}
    FROM hold WHERE wallets.id = hold.wallet_id
    RETURNING ${CHANGED_WALLET}
  ), ${ledgerRows({
    type: 'refund',
    id: '$3',
    amount: '$2::bigint',
    orderId: 'hold.order_id',
    topupId: 'hold.topup_id',
    reference: 'hold.reference',
    joined: 'CROSS JOIN hold',
  })}
  SELECT 1 FROM wallet`;

const SETTLE = {
  order_id: prepared(settleStatement('order_id')),
  topup_id: prepared(settleStatement('topup_id')),
};
const REFUND = {
  order_id: prepared(refundStatement('order_id')),
  topup_id: prepared(refundStatement('topup_id')),
};

/** SQL of holds: each operation is one statement, so that the wallet's row is locked as briefly as possible. */
@Injectable()
export class WalletHoldsRepository {
  /** Reserves `money`. Returns false and writes nothing if the wallet does not cover it. */
  async hold(
    tx: Tx,
    partnerId: string,
    money: Money,
    subject: ChargeSubject,
    reference: string | null,
  ): Promise<boolean> {
    const { column, id } = subjectOf(subject);
    const [orderId, topupId] = column === 'order_id' ? [id, null] : [null, id];
    const { rows } = await sql(tx.manager, HOLD, [
      partnerId,
      money.currency,
      money.amount,
      orderId,
      topupId,
      reference,
    ]);
    return rows.length === 1;
  }

  /**
   * Captures the amounts of active holds as one `charge` each and releases the rest. A resolved hold does not change.
   * Returns the subjects of captures that were never held.
   */
  async settle(
    tx: Tx,
    column: SubjectColumn,
    settlements: readonly { readonly subjectId: string; readonly captured: number }[],
  ): Promise<readonly string[]> {
    const { rows } = await sql<{ subject_id: string }>(tx.manager, SETTLE[column], [
      settlements.map(({ subjectId }) => subjectId),
      settlements.map(({ captured }) => captured),
      settlements.map(() => newId('txn')),
    ]);
    return rows.map((row) => row.subject_id);
  }

  /**
   * Refunds `amount` of a capture. Returns false and writes nothing if the refunds would exceed the capture.
   * @param isHeldAgain whether `tx` holds the amount again, so that the wallet is low afterwards if it was low before
   */
  async refund(tx: Tx, subject: ChargeSubject, amount: number, isHeldAgain: boolean): Promise<boolean> {
    const { column, id } = subjectOf(subject);
    const { rows } = await sql(tx.manager, REFUND[column], [id, amount, newId('txn'), isHeldAgain]);
    return rows.length === 1;
  }
}
