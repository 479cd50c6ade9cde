import { expect } from 'vitest';
import type { TestDatabase } from '../harness/index.js';

/**
 * Checks the ledger: entries sum to 0, each wallet matches its entries and its holds, balances follow from one
 * transaction to the next, and every ended live order was charged for what it issued.
 */
export async function expectBooksToAddUp({ pool }: TestDatabase): Promise<void> {
  for (const [what, query] of Object.entries(BREACHES)) {
    expect((await pool.query(query)).rows, what).toEqual([]);
  }
}

const BREACHES: Readonly<Record<string, string>> = {
  'entries of a currency that do not sum to 0': `
    SELECT currency, sum(amount) FROM ledger_entries GROUP BY currency HAVING sum(amount) <> 0`,
  'wallets that differ from their entries': `
    SELECT w.id, w.posted, coalesce(sum(e.amount), 0) AS entries
    FROM wallets w LEFT JOIN ledger_entries e ON e.account = 'partner_wallet:' || w.id
    GROUP BY w.id HAVING w.posted <> coalesce(sum(e.amount), 0)`,
  'wallets that differ from their holds': `
    SELECT w.id, w.held, coalesce(sum(h.amount), 0) AS holds
    FROM wallets w LEFT JOIN wallet_holds h ON h.wallet_id = w.id AND h.status = 'active'
    GROUP BY w.id HAVING w.held <> coalesce(sum(h.amount), 0)`,
  'balances that do not follow from the previous one': `
    SELECT * FROM (
      SELECT id, amount, balance_after,
             coalesce(lag(balance_after) OVER (PARTITION BY wallet_id ORDER BY created_at, id), 0) AS before
      FROM ledger_transactions) AS t
    WHERE balance_after <> before + amount`,
  'live orders whose charge is not what they issued': `
    SELECT o.id, o.status, o.quantity_issued, coalesce(-t.amount, 0) AS charged, h.status AS hold
    FROM orders o LEFT JOIN ledger_transactions t ON t.order_id = o.id AND t.type = 'charge'
                  LEFT JOIN wallet_holds h ON h.order_id = o.id
    WHERE o.mode = 'live' AND (
      coalesce(-t.amount, 0) <> o.unit_price_amount * o.quantity_issued
      OR (o.status IN ('pending', 'processing')) <> (coalesce(h.status, '') = 'active'))`,
  'live orders whose refunds are not what came back': `
    SELECT o.id, o.refunded_amount, h.amount - h.captured + h.refunded AS came_back
    FROM orders o JOIN wallet_holds h ON h.order_id = o.id
    WHERE h.status <> 'active' AND o.refunded_amount <> h.amount - h.captured + h.refunded`,
  'money of sandbox orders': `
    SELECT o.id FROM orders o WHERE o.mode = 'sandbox' AND (
      EXISTS (SELECT 1 FROM wallet_holds h WHERE h.order_id = o.id)
      OR EXISTS (SELECT 1 FROM ledger_transactions t WHERE t.order_id = o.id))`,
};
