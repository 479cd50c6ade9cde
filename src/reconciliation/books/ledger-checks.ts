import type { BookCheck } from './book-check.js';

/** Advice: an adjustment would build on the wrong balance and break the chain of balances for good. */
const REPAIR =
  'Find the statement that wrote it, then reset the wallet to its ledger and holds as in the runbook. Do not book an adjustment.';

/** Wallets of the range. */
const WALLETS = 'w.id > $1::bigint AND w.id <= $2::bigint';
const WALLET = `jsonb_build_object('wallet', w.id::text, 'partner', w.partner_id, 'currency', w.currency) AS subject`;
const TRANSACTION = `jsonb_build_object('transaction', t.id, 'wallet', t.wallet_id::text, 'partner', t.partner_id) AS subject`;

/** Finds holds and postings `m` (with kind, order_id, topup_id, partner_id) whose order or top-up does not exist. */
const WITHOUT_SUBJECT = `
  LEFT JOIN LATERAL (SELECT partner_id, mode FROM orders WHERE id = m.order_id OFFSET 0) AS o ON true
  LEFT JOIN LATERAL (SELECT partner_id, mode FROM topups WHERE id = m.topup_id OFFSET 0) AS t ON true
  WHERE coalesce(o.partner_id, t.partner_id) IS DISTINCT FROM m.partner_id
     OR coalesce(o.mode, t.mode) IS DISTINCT FROM 'live'`;
const WHOSE = `
  jsonb_strip_nulls(jsonb_build_object('order', m.order_id, 'topup', m.topup_id, 'partner', m.partner_id)) AS subject,
  'a live order or top-up of the partner' AS expected,
  m.kind || coalesce(' for one of ' || coalesce(o.mode || ' ' || o.partner_id, t.mode || ' ' || t.partner_id),
                     ' for nothing that is known') AS found`;

/**
 * Invariants of wallets and ledger alone (D27). Each link is checked separately: a transaction by its entries, a
 * balance by the previous one, a wallet by the last balance. Together they prove that a wallet is the sum of its
 * entries.
 */
export const LEDGER_CHECKS: readonly BookCheck[] = [
  {
    check: 'ledger_sums_to_zero',
    severity: 'error',
    what: 'All entries of a currency add up to 0, and so do the entries of any set of transactions.',
    advice: 'Find the transaction in the difference of ledger_transaction_balances.',
    walks: [
      {
        table: 'entries',
        query: `
          SELECT jsonb_build_object('currency', currency, 'from', min(transaction_id), 'to', max(transaction_id)) AS subject,
                 '0' AS expected, sum(amount)::text AS found
          FROM ledger_entries WHERE transaction_id > $1 AND transaction_id <= $2
          GROUP BY currency HAVING sum(amount) <> 0`,
      },
    ],
  },
  {
    check: 'ledger_transaction_balances',
    severity: 'error',
    what: 'The entries of a transaction add up to 0 in its currency, with its amount on its wallet and nothing on another wallet.',
    advice: 'Do not write to the wallet until you have found the missing or wrong entry in a backup.',
    walks: [
      {
        table: 'transactions',
        query: `
          SELECT ${TRANSACTION}, format('sum 0, on the wallet %s %s', t.amount, t.currency) AS expected,
                 format('sum %s, on the wallet %s, %s entries of another wallet or currency', coalesce(sum(e.amount), 0),
                        coalesce(sum(e.amount) FILTER (WHERE e.account = 'partner_wallet:' || t.wallet_id), 0),
                        count(*) FILTER (WHERE e.is_strange)) AS found
          FROM ledger_transactions t
               LEFT JOIN LATERAL (
                 SELECT amount, account,
                        currency <> t.currency
                          OR account LIKE 'partner_wallet:%' AND account <> 'partner_wallet:' || t.wallet_id AS is_strange
                 FROM ledger_entries WHERE transaction_id = t.id OFFSET 0) AS e ON true
          WHERE t.id > $1 AND t.id <= $2
          GROUP BY t.id
          HAVING coalesce(sum(e.amount), 0) <> 0
              OR coalesce(sum(e.amount) FILTER (WHERE e.account = 'partner_wallet:' || t.wallet_id), 0) <> t.amount
              OR count(*) FILTER (WHERE e.is_strange) > 0`,
      },
    ],
  },
  {
    check: 'wallet_posted_is_its_entries',
    severity: 'error',
    what: "A wallet's posted balance equals the balance of its last transaction.",
    advice: REPAIR,
    walks: [
      {
        table: 'wallets',
        query: `
          SELECT ${WALLET}, coalesce(last.balance_after, 0)::text AS expected, w.posted::text AS found
          FROM wallets w
               LEFT JOIN LATERAL (
                 SELECT balance_after FROM ledger_transactions
                 WHERE partner_id = w.partner_id AND wallet_id = w.id
                 ORDER BY created_at DESC, id DESC LIMIT 1) AS last ON true
          WHERE ${WALLETS} AND w.posted <> coalesce(last.balance_after, 0)`,
      },
    ],
  },
  {
    check: 'wallet_held_is_its_holds',
    severity: 'error',
    what: "A wallet's held amount is the sum of its active holds.",
    advice: REPAIR,
    walks: [
      {
        table: 'wallets',
        query: `
          SELECT ${WALLET}, coalesce(sum(h.amount), 0)::text AS expected, w.held::text AS found
          FROM wallets w LEFT JOIN wallet_holds h ON h.wallet_id = w.id AND h.status = 'active'
          WHERE ${WALLETS}
          GROUP BY w.id HAVING w.held <> coalesce(sum(h.amount), 0)`,
      },
    ],
  },
  {
    check: 'wallet_never_overdrawn',
    severity: 'error',
    what: 'A wallet never holds or spends more than it has.',
    advice: 'Suspend the partner, and find the purchases that were accepted without cover.',
    walks: [
      {
        table: 'wallets',
        query: `
          SELECT ${WALLET}, 'posted - held >= 0, held >= 0' AS expected,
                 format('posted %s, held %s', w.posted, w.held) AS found
          FROM wallets w WHERE ${WALLETS} AND (w.posted - w.held < 0 OR w.held < 0)`,
      },
    ],
  },
  {
    check: 'balance_chain_unbroken',
    severity: 'error',
    what: 'Each balance of a statement follows from the previous one.',
    advice: 'Compare with a backup: a transaction is missing, was changed, or has the wrong time.',
    walks: [
      {
        table: 'transactions',
        query: `
          SELECT ${TRANSACTION}, (coalesce(p.balance_after, 0) + t.amount)::text AS expected,
                 t.balance_after::text AS found
          FROM ledger_transactions t
               LEFT JOIN LATERAL (
                 SELECT balance_after FROM ledger_transactions
                 WHERE partner_id = t.partner_id AND wallet_id = t.wallet_id
                   AND (created_at, id) < (t.created_at, t.id)
                 ORDER BY created_at DESC, id DESC LIMIT 1) AS p ON true
          WHERE t.id > $1 AND t.id <= $2 AND t.balance_after <> coalesce(p.balance_after, 0) + t.amount`,
      },
    ],
  },
  {
    check: 'money_has_its_subject',
    severity: 'error',
    what: 'Every hold, charge and refund belongs to a live order or top-up of the same partner.',
    advice: 'Find the owner of the money, and release or refund it manually.',
    walks: [
      {
        table: 'holds',
        query: `
          SELECT ${WHOSE}
          FROM (SELECT 'hold' AS kind, h.order_id, h.topup_id, w.partner_id
                FROM wallet_holds h JOIN wallets w ON w.id = h.wallet_id
                WHERE h.id > $1::bigint AND h.id <= $2::bigint) AS m ${WITHOUT_SUBJECT}`,
      },
      {
        table: 'transactions',
        query: `
          SELECT ${WHOSE}
          FROM (SELECT DISTINCT type AS kind, order_id, topup_id, partner_id FROM ledger_transactions
                WHERE type IN ('charge', 'refund') AND id > $1 AND id <= $2) AS m ${WITHOUT_SUBJECT}`,
      },
    ],
  },
];
