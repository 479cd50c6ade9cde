import { onDatabase } from '../harness/database.js';
import type { Sold } from './sold-world.js';

/** A corruption that breaks one rule, and possibly others. */
export interface BookBreachCase {
  readonly check: string;
  readonly statements: (sold: Sold) => string;
  /** The id that the line must contain. */
  readonly names: (sold: Sold) => string;
}

const currency = () => 'currency USD';
const chargeOf = (id: string) =>
  `(SELECT id FROM ledger_transactions WHERE order_id = '${id}' AND type = 'charge')`;

/** One corruption for each invariant of the books. */
export const BOOK_BREACHES: readonly BookBreachCase[] = [
  {
    check: 'ledger_sums_to_zero',
    statements: ({ issued }) =>
      `UPDATE ledger_entries SET amount = amount + 1 WHERE seq = 2 AND transaction_id = ${chargeOf(issued)}`,
    names: currency,
  },
  {
    check: 'ledger_transaction_balances',
    // The total of the currency is still 0.
    statements: ({ issued, zendit }) => `
      UPDATE ledger_entries SET amount = amount + 1 WHERE seq = 2 AND transaction_id = ${chargeOf(issued)};
      UPDATE ledger_entries SET amount = amount - 1 WHERE seq = 2 AND transaction_id = ${chargeOf(zendit)}`,
    names: () => 'transaction txn_',
  },
  {
    check: 'wallet_posted_is_its_entries',
    statements: () => 'UPDATE wallets SET posted = posted + 1',
    names: currency,
  },
  {
    check: 'wallet_held_is_its_holds',
    statements: () => 'UPDATE wallets SET held = held + 1',
    names: currency,
  },
  {
    check: 'wallet_never_overdrawn',
    statements: () => `
      ALTER TABLE wallets DROP CONSTRAINT wallets_available;
      UPDATE wallets SET held = posted + 1`,
    names: currency,
  },
  {
    check: 'balance_chain_unbroken',
    statements: ({ issued }) =>
      `UPDATE ledger_transactions SET balance_after = balance_after + 1 WHERE id = ${chargeOf(issued)}`,
    names: () => 'transaction txn_',
  },
  {
    check: 'money_has_its_subject',
    statements: ({ failed }) => `DELETE FROM orders WHERE id = '${failed}'`,
    names: ({ failed }) => failed,
  },
  {
    check: 'issued_order_is_charged_once',
    statements: ({ issued }) =>
      `UPDATE wallet_holds SET captured = captured - 1, refunded = 0 WHERE order_id = '${issued}'`,
    names: ({ issued }) => issued,
  },
  {
    check: 'failed_order_costs_nothing',
    statements: ({ failed }) =>
      `UPDATE wallet_holds SET status = 'captured', captured = amount WHERE order_id = '${failed}'`,
    names: ({ failed }) => failed,
  },
  {
    check: 'canceled_order_is_refunded',
    statements: ({ canceled }) =>
      `DELETE FROM ledger_transactions WHERE order_id = '${canceled}' AND type = 'refund'`,
    names: ({ canceled }) => canceled,
  },
  {
    check: 'order_refunds_agree',
    statements: ({ issued }) => `UPDATE orders SET refunded_amount = 1 WHERE id = '${issued}'`,
    names: ({ issued }) => issued,
  },
  {
    check: 'canceled_esim_is_refunded',
    statements: ({ issued }) => `
      UPDATE esims SET status = 'canceled'
      WHERE id = (SELECT id FROM esims WHERE order_id = '${issued}' ORDER BY id LIMIT 1)`,
    names: ({ issued }) => issued,
  },
  {
    check: 'approved_refund_is_booked_once',
    statements: ({ issued }) => `
      INSERT INTO refund_requests (id, partner_id, mode, esim_id, order_id, reason, status, amount, currency, decided_at)
      SELECT 'rfr_1', partner_id, mode, id, order_id, 'other', 'approved', 1, 'USD', now() FROM esims
      WHERE order_id = '${issued}' LIMIT 1`,
    names: ({ issued }) => issued,
  },
  {
    check: 'open_order_holds_its_price',
    statements: ({ failed }) => `UPDATE orders SET status = 'processing' WHERE id = '${failed}'`,
    names: ({ failed }) => failed,
  },
  {
    check: 'completed_topup_is_charged_once',
    statements: ({ topup }) =>
      `DELETE FROM ledger_transactions WHERE topup_id = '${topup}' AND type = 'charge'`,
    names: ({ topup }) => topup,
  },
  {
    check: 'failed_topup_costs_nothing',
    statements: ({ failedTopup }) =>
      `UPDATE wallet_holds SET status = 'active', resolved_at = NULL WHERE topup_id = '${failedTopup}'`,
    names: ({ failedTopup }) => failedTopup,
  },
  {
    check: 'open_topup_holds_its_price',
    statements: ({ topup }) =>
      `UPDATE topups SET status = 'processing', completed_at = NULL WHERE id = '${topup}'`,
    names: ({ topup }) => topup,
  },
  {
    check: 'sandbox_never_touches_money',
    statements: ({ sandboxOrder }) => `
      INSERT INTO wallet_holds (wallet_id, order_id, amount, status, resolved_at)
      SELECT id, '${sandboxOrder}', 1, 'released', now() FROM wallets`,
    names: ({ sandboxOrder }) => sandboxOrder,
  },
  {
    check: 'order_has_its_esims',
    statements: ({ zendit }) => `DELETE FROM esims WHERE order_id = '${zendit}'`,
    names: ({ zendit }) => zendit,
  },
  {
    check: 'ended_order_has_one_event',
    statements: ({ partly }) => `
      INSERT INTO events (id, partner_id, mode, type, body, created_at)
      SELECT id || 'X', partner_id, mode, type, body, created_at FROM events
      WHERE type = 'order.issued' AND body LIKE '%${partly}%'`,
    names: ({ partly }) => partly,
  },
  {
    check: 'ended_topup_has_one_event',
    statements: ({ topup }) =>
      `DELETE FROM events WHERE type = 'order.topup.completed' AND body LIKE '%${topup}%'`,
    names: ({ topup }) => topup,
  },
  {
    check: 'order_is_not_stuck',
    statements: ({ sandboxOrder }) => `
      UPDATE orders SET status = 'pending', created_at = now() - interval '16 minutes' WHERE id = '${sandboxOrder}'`,
    names: ({ sandboxOrder }) => sandboxOrder,
  },
  {
    check: 'topup_is_not_stuck',
    statements: ({ failedTopup }) => `
      UPDATE topups SET status = 'processing', failed_at = NULL, failure_code = NULL,
                        created_at = now() - interval '16 minutes' WHERE id = '${failedTopup}'`,
    names: ({ failedTopup }) => failedTopup,
  },
];

/** Runs statements with triggers and foreign keys off, as a corruption would bypass them. */
export function corrupt(url: string, statements: string): Promise<void> {
  return onDatabase(url, `SET session_replication_role = replica; ${statements}`);
}
