import type { BookCheck } from '../difference.js';

const REPAIR = 'Stop selling to the partner, find the statement that wrote it, correct it by an adjustment.';

/** The wallets and the ledger by themselves (D27). */
export const LEDGER_CHECKS: readonly BookCheck[] = [
  {
    check: 'ledger_sums_to_zero',
    severity: 'error',
    what: 'All entries of a currency sum up to 0.',
    advice: 'See which transaction is named by ledger_transaction_balances.',
    query: `
      SELECT jsonb_build_object('currency', currency) AS subject, '0' AS expected, sum(amount)::text AS found
      FROM ledger_entries GROUP BY currency HAVING sum(amount) <> 0`,
  },
  {
    check: 'ledger_transaction_balances',
    severity: 'error',
    what: 'The entries of a transaction sum up to 0, in its currency, with its amount on its wallet.',
    advice: 'Write nothing to the wallet until the missing or wrong entry is found in a backup.',
    query: `
      SELECT jsonb_build_object('transaction', t.id, 'wallet', t.wallet_id::text, 'partner', t.partner_id) AS subject,
             format('sum 0, on the wallet %s %s', t.amount, t.currency) AS expected,
             format('sum %s, on the wallet %s, %s entries in another currency', coalesce(sum(e.amount), 0),
                    coalesce(sum(e.amount) FILTER (WHERE e.account = 'partner_wallet:' || t.wallet_id), 0),
                    count(*) FILTER (WHERE e.currency <> t.currency)) AS found
      FROM ledger_transactions t LEFT JOIN ledger_entries e ON e.transaction_id = t.id
      GROUP BY t.id
      HAVING coalesce(sum(e.amount), 0) <> 0
          OR coalesce(sum(e.amount) FILTER (WHERE e.account = 'partner_wallet:' || t.wallet_id), 0) <> t.amount
          OR count(*) FILTER (WHERE e.currency <> t.currency) > 0`,
  },
  {
    check: 'wallet_posted_is_its_entries',
    severity: 'error',
    what: "A wallet's posted balance is the sum of its account's entries.",
    advice: REPAIR,
    query: `
      SELECT jsonb_build_object('wallet', w.id::text, 'partner', w.partner_id, 'currency', w.currency) AS subject,
             coalesce(sum(e.amount), 0)::text AS expected, w.posted::text AS found
      FROM wallets w LEFT JOIN ledger_entries e ON e.account = 'partner_wallet:' || w.id
      GROUP BY w.id HAVING w.posted <> coalesce(sum(e.amount), 0)`,
  },
  {
    check: 'wallet_held_is_its_holds',
    severity: 'error',
    what: 'What a wallet holds is the sum of its active holds.',
    advice: 'Compare the active holds with the open orders and top-ups; set held to their sum.',
    query: `
      SELECT jsonb_build_object('wallet', w.id::text, 'partner', w.partner_id, 'currency', w.currency) AS subject,
             coalesce(sum(h.amount), 0)::text AS expected, w.held::text AS found
      FROM wallets w LEFT JOIN wallet_holds h ON h.wallet_id = w.id AND h.status = 'active'
      GROUP BY w.id HAVING w.held <> coalesce(sum(h.amount), 0)`,
  },
  {
    check: 'wallet_never_overdrawn',
    severity: 'error',
    what: 'A wallet never holds or spends more than it has.',
    advice: 'Suspend the partner and find what was accepted without cover.',
    query: `
      SELECT jsonb_build_object('wallet', id::text, 'partner', partner_id, 'currency', currency) AS subject,
             'posted - held >= 0, held >= 0' AS expected, format('posted %s, held %s', posted, held) AS found
      FROM wallets WHERE posted - held < 0 OR held < 0`,
  },
  {
    check: 'balance_chain_unbroken',
    severity: 'error',
    what: 'Each balance of a statement follows from the one before.',
    advice: 'Compare with a backup: a transaction is missing, was changed, or has the wrong time.',
    query: `
      SELECT jsonb_build_object('transaction', id, 'wallet', wallet_id::text, 'partner', partner_id) AS subject,
             (before + amount)::text AS expected, balance_after::text AS found
      FROM (SELECT id, wallet_id, partner_id, amount, balance_after,
                   coalesce(lag(balance_after) OVER (PARTITION BY wallet_id ORDER BY created_at, id), 0) AS before
            FROM ledger_transactions) AS chain
      WHERE balance_after <> before + amount`,
  },
  {
    check: 'money_has_its_subject',
    severity: 'error',
    what: 'Every hold, charge and refund belongs to a live order or top-up of the same partner.',
    advice: 'Find out whose money it is; release or refund it by hand.',
    query: `
      SELECT jsonb_strip_nulls(jsonb_build_object('order', m.order_id, 'topup', m.topup_id, 'partner', m.partner_id))
               AS subject,
             'a live order or top-up of the partner' AS expected,
             m.kind || coalesce(' for one of ' || coalesce(o.mode || ' ' || o.partner_id, t.mode || ' ' || t.partner_id),
                                ' for nothing that is known') AS found
      FROM (SELECT 'hold' AS kind, h.order_id, h.topup_id, w.partner_id
            FROM wallet_holds h JOIN wallets w ON w.id = h.wallet_id
            UNION
            SELECT type, order_id, topup_id, partner_id FROM ledger_transactions
            WHERE type IN ('charge', 'refund')) AS m
           LEFT JOIN orders o ON o.id = m.order_id LEFT JOIN topups t ON t.id = m.topup_id
      WHERE coalesce(o.partner_id, t.partner_id) IS DISTINCT FROM m.partner_id
         OR coalesce(o.mode, t.mode) IS DISTINCT FROM 'live'`,
  },
];
