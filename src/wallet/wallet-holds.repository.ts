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
  subjectOf,
} from './wallet-sql.js';

/** What became of a hold that was to be resolved. */
export type Settlement = 'settled' | 'already_settled' | 'no_hold';

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

const settleStatement = (column: string): string => `
  WITH hold AS (
    UPDATE wallet_holds
    SET status = CASE WHEN $2::bigint > 0 THEN 'captured' ELSE 'released' END, captured = $2::bigint, resolved_at = now()
    WHERE ${column} = $1 AND status = 'active'
    RETURNING wallet_id, order_id, topup_id, reference, amount
  ), wallet AS (
    UPDATE wallets
    SET held = held - hold.amount,
        posted = posted - $2::bigint,
        last_posted_at = CASE WHEN $2::bigint = 0 THEN last_posted_at
          ELSE greatest(clock_timestamp(), last_posted_at + interval '1 microsecond') END,
        ${lowSince('posted - held - $2::bigint + hold.amount')}
    FROM hold WHERE wallets.id = hold.wallet_id
    RETURNING ${CHANGED_WALLET}
  ), ${ledgerRows({
    type: 'charge',
    id: '$3',
    amount: '-$2::bigint',
    orderId: 'hold.order_id',
    topupId: 'hold.topup_id',
    reference: 'hold.reference',
    joined: 'CROSS JOIN hold',
  })}
  SELECT EXISTS (SELECT 1 FROM wallet) AS settled,
         EXISTS (SELECT 1 FROM wallet_holds WHERE ${column} = $1) AS known`;

const refundStatement = (column: string): string => `
  WITH hold AS (
    UPDATE wallet_holds SET refunded = refunded + $2::bigint
    WHERE ${column} = $1 AND status = 'captured' AND refunded + $2::bigint <= captured
    RETURNING wallet_id, order_id, topup_id, reference
  ), wallet AS (
    UPDATE wallets SET ${postedBy('$2::bigint')}, ${lowSince('posted - held + $2::bigint')}
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

/** SQL of holds: each operation is one statement, so that the wallet's row is locked for as short as it can be. */
@Injectable()
export class WalletHoldsRepository {
  /** Reserves `money`, unless the wallet does not cover it: then false, and nothing is written. */
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

  /** Captures `captured` of the active hold as a `charge` and releases the rest. */
  async settle(tx: Tx, subject: ChargeSubject, captured: number): Promise<Settlement> {
    const { column, id } = subjectOf(subject);
    const { rows } = await sql<{ settled: boolean; known: boolean }>(tx.manager, SETTLE[column], [
      id,
      captured,
      newId('txn'),
    ]);
    const { settled, known } = rows[0]!;
    if (settled) return 'settled';
    return known ? 'already_settled' : 'no_hold';
  }

  /** Gives `amount` of what was captured back; false, and nothing written, when that was never captured. */
  async refund(tx: Tx, subject: ChargeSubject, amount: number): Promise<boolean> {
    const { column, id } = subjectOf(subject);
    const { rows } = await sql(tx.manager, REFUND[column], [id, amount, newId('txn')]);
    return rows.length === 1;
  }
}
