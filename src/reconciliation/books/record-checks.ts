import { type BookCheck, type BookSettings, ORDER_SUBJECT, TOPUP_SUBJECT } from './book-check.js';

const afterMs = ({ needsReviewAfterMs }: BookSettings) => [needsReviewAfterMs];
const ORDERS = 'o.id > $1 AND o.id <= $2';
const TOPUPS = 'p.id > $1 AND p.id <= $2';

/** Sandbox rows whose `column` appears in the ledger or in a hold. */
function noMoney(subject: string, table: 'orders o' | 'topups p', range: string, column: string): string {
  const [, alias] = table.split(' ');
  return `
    SELECT ${subject}, 'no money' AS expected,
           format('%s holds, %s charges, %s refunds', h.holds, c.charges, r.refunds) AS found
    FROM ${table},
         LATERAL (SELECT count(*) AS holds FROM wallet_holds WHERE ${column} = ${alias}.id) AS h,
         LATERAL (SELECT count(*) AS charges FROM ledger_transactions
                  WHERE ${column} = ${alias}.id AND type = 'charge') AS c,
         LATERAL (SELECT count(*) AS refunds FROM ledger_transactions
                  WHERE ${column} = ${alias}.id AND type = 'refund') AS r
    WHERE ${range} AND ${alias}.mode = 'sandbox' AND h.holds + c.charges + r.refunds > 0`;
}

/** Consistency of order and top-up rows, in both modes. */
export const RECORD_CHECKS: readonly BookCheck[] = [
  {
    check: 'sandbox_never_touches_money',
    severity: 'error',
    what: 'A Sandbox purchase has no hold and no transaction (D26).',
    advice: 'Return the amount to the partner with an adjustment.',
    walks: [
      { table: 'orders', query: noMoney(ORDER_SUBJECT, 'orders o', ORDERS, 'order_id') },
      { table: 'topups', query: noMoney(TOPUP_SUBJECT, 'topups p', TOPUPS, 'topup_id') },
    ],
  },
  {
    check: 'order_has_its_esims',
    severity: 'error',
    what: 'An order has as many eSIMs as its issued quantity.',
    advice:
      "Compare with the wholesaler's view of the order. The partner received the eSIMs in order.issued.",
    walks: [
      {
        table: 'orders',
        query: `
          SELECT ${ORDER_SUBJECT}, format('%s: %s eSIMs', o.status, o.quantity_issued) AS expected,
                 format('%s eSIMs', e.esims) AS found
          FROM orders o, LATERAL (SELECT count(*) AS esims FROM esims WHERE order_id = o.id) AS e
          WHERE ${ORDERS} AND e.esims <> o.quantity_issued`,
      },
    ],
  },
];

/** Cases that a person must look into. */
export const STUCK_CHECKS: readonly BookCheck[] = [
  {
    check: 'order_is_not_stuck',
    severity: 'warning',
    what: 'No order or cancellation waits longer than NEEDS_REVIEW_AFTER_MS for its outcome.',
    advice:
      'If pending, check that a worker is running, because needs-review does not list it. Otherwise see ' +
      'GET /internal/v1/orders/needs-review and settle it with POST /internal/v1/orders/{id}/reconcile.',
    walks: [
      {
        table: 'orders',
        parameters: afterMs,
        query: `
          SELECT ${ORDER_SUBJECT}, 'an end' AS expected,
                 format('%s since %s, %s attempts, last error %s', o.status, o.since, o.upstream_attempts,
                        coalesce(o.last_error, 'none')) AS found
          FROM (SELECT *, CASE status WHEN 'canceling' THEN coalesce(cancel_requested_at, updated_at)
                                      ELSE created_at END AS since FROM orders) AS o
          WHERE ${ORDERS} AND o.status IN ('pending', 'processing', 'canceling')
            AND o.since <= now() - $3 * interval '1 millisecond'`,
      },
    ],
  },
  {
    check: 'topup_is_not_stuck',
    severity: 'warning',
    what: 'No top-up waits longer than NEEDS_REVIEW_AFTER_MS for its outcome.',
    advice:
      'If pending, check that a worker is running, because needs-review does not list it. Otherwise see ' +
      'GET /internal/v1/topups/needs-review and settle it with POST /internal/v1/topups/{id}/reconcile.',
    walks: [
      {
        table: 'topups',
        parameters: afterMs,
        query: `
          SELECT ${TOPUP_SUBJECT}, 'an end' AS expected,
                 format('%s since %s, %s attempts, last error %s', p.status, p.created_at, p.attempts,
                        coalesce(p.last_error, 'none')) AS found
          FROM topups p
          WHERE ${TOPUPS} AND p.status IN ('pending', 'processing')
            AND p.created_at <= now() - $3 * interval '1 millisecond'`,
      },
    ],
  },
];
