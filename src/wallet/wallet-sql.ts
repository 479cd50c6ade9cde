import type { TransactionType } from './wallet.entity.js';

/** The subject of a hold: one order or one top-up. */
export type ChargeSubject = { readonly orderId: string } | { readonly topupId: string };

/** The account opposite the partner's wallet, per type of transaction (double entry). */
const COUNTER_ACCOUNTS: Readonly<Record<TransactionType, string>> = {
  charge: 'revenue',
  refund: 'revenue',
  deposit: 'cash',
  adjustment: 'adjustment',
};

/**
 * SQL that sets `low_since`, for a statement that also changes the available amount. `now()` identifies the change, so
 * a wallet signals once each time it becomes low.
 * @param keptIf SQL condition under which nothing changes, because a later statement of the transaction decides
 */
export function lowSince(available: string, keptIf = 'false'): string {
  return `low_since = CASE WHEN ${keptIf} THEN low_since
    WHEN ${available} < low_balance_amount THEN coalesce(low_since, now()) END`;
}

/** Columns that every statement returns from the changed wallet; the parts below read them as `wallet`. */
export const CHANGED_WALLET = `wallets.id, wallets.partner_id, wallets.currency, wallets.posted,
  wallets.posted - wallets.held AS available, wallets.last_posted_at,
  wallets.low_since IS NOT DISTINCT FROM now() AS became_low`;

/**
 * Assignments for a change of `posted`. The time is read under the row's lock and is later than that of the wallet's
 * last transaction, even after the clock was set back. Sorted by time, an account statement therefore shows balances in
 * order.
 */
export function postedBy(amount: string): string {
  return `posted = posted + ${amount},
    last_posted_at = greatest(clock_timestamp(), last_posted_at + interval '1 microsecond')`;
}

export const SIGNAL_IF_LOW = `signal AS (
  INSERT INTO wallet_low_signals (wallet_id, available) SELECT id, available FROM wallet WHERE became_low
)`;

/** SQL expressions of a transaction's columns, over the CTE `wallet` and the tables in `joined`. */
export interface LedgerRow {
  readonly type: TransactionType;
  readonly id: string;
  readonly amount: string;
  readonly orderId?: string;
  readonly topupId?: string;
  readonly reference: string;
  readonly note?: string;
  readonly actor?: string;
  readonly joined?: string;
}

/** CTEs that write one transaction and its two entries. They write nothing if `wallet` is empty or the amount is 0. */
export function ledgerRows(row: LedgerRow): string {
  const { id, amount, joined = '' } = row;
  return `txn AS (
    INSERT INTO ledger_transactions (id, wallet_id, partner_id, currency, type, amount, balance_after, order_id,
                                     topup_id, reference, note, actor, created_at)
    SELECT ${id}, wallet.id, wallet.partner_id, wallet.currency, '${row.type}', ${amount}, wallet.posted,
           ${row.orderId ?? 'NULL'}, ${row.topupId ?? 'NULL'}, ${row.reference}, ${row.note ?? 'NULL'},
           ${row.actor ?? 'NULL'}, wallet.last_posted_at
    FROM wallet ${joined} WHERE ${amount} <> 0
  ), entries AS (
    INSERT INTO ledger_entries (transaction_id, seq, account, amount, currency)
    SELECT ${id}, side.seq, side.account, side.amount, wallet.currency
    FROM wallet, LATERAL (VALUES
      (1, 'partner_wallet:' || wallet.id, ${amount}),
      (2, '${COUNTER_ACCOUNTS[row.type]}:' || wallet.currency, -(${amount}))) AS side (seq, account, amount)
    WHERE ${amount} <> 0
  )`;
}

export type SubjectColumn = 'order_id' | 'topup_id';

/** The column of the subject, and its id. */
export function subjectOf(subject: ChargeSubject): { column: SubjectColumn; id: string } {
  return 'orderId' in subject
    ? { column: 'order_id', id: subject.orderId }
    : { column: 'topup_id', id: subject.topupId };
}
