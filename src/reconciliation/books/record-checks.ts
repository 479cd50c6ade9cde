import type { BookCheck, BookSettings } from './book-check.js';

const afterMs = ({ needsReviewAfterMs }: BookSettings) => [needsReviewAfterMs];
const ORDER = `jsonb_build_object('order', o.id, 'partner', o.partner_id) AS subject`;
const TOPUP = `jsonb_build_object('topup', p.id, 'esim', p.esim_id, 'partner', p.partner_id) AS subject`;
const ORDERS = 'o.id > $1 AND o.id <= $2';
const TOPUPS = 'p.id > $1 AND p.id <= $2';

/** What orders and top-ups say of themselves, in both modes. */
export const RECORD_CHECKS: readonly BookCheck[] = [
  {
    check: 'sandbox_never_touches_money',
    severity: 'error',
    what: 'Nothing of Sandbox has a hold or a transaction (D26).',
    advice: 'Give the partner back what was taken, by an adjustment.',
    walks: [
      {
        table: 'orders',
        query: `
          SELECT ${ORDER}, 'no money' AS expected,
                 format('%s holds, %s charges, %s refunds', h.holds, c.charges, r.refunds) AS found
          FROM orders o,
               LATERAL (SELECT count(*) AS holds FROM wallet_holds WHERE order_id = o.id) AS h,
               LATERAL (SELECT count(*) AS charges FROM ledger_transactions
                        WHERE order_id = o.id AND type = 'charge') AS c,
               LATERAL (SELECT count(*) AS refunds FROM ledger_transactions
                        WHERE order_id = o.id AND type = 'refund') AS r
          WHERE ${ORDERS} AND o.mode = 'sandbox' AND h.holds + c.charges + r.refunds > 0`,
      },
      {
        table: 'topups',
        query: `
          SELECT ${TOPUP}, 'no money' AS expected,
                 format('%s holds, %s charges, %s refunds', h.holds, c.charges, r.refunds) AS found
          FROM topups p,
               LATERAL (SELECT count(*) AS holds FROM wallet_holds WHERE topup_id = p.id) AS h,
               LATERAL (SELECT count(*) AS charges FROM ledger_transactions
                        WHERE topup_id = p.id AND type = 'charge') AS c,
               LATERAL (SELECT count(*) AS refunds FROM ledger_transactions
                        WHERE topup_id = p.id AND type = 'refund') AS r
          WHERE ${TOPUPS} AND p.mode = 'sandbox' AND h.holds + c.charges + r.refunds > 0`,
      },
    ],
  },
  {
    check: 'order_has_its_esims',
    severity: 'error',
    what: 'An order has as many eSIMs as it says that it issued.',
    advice: 'Compare with the upstream by the order; the partner was told the eSIMs of order.issued.',
    walks: [
      {
        table: 'orders',
        query: `
          SELECT ${ORDER}, format('%s: %s eSIMs', o.status, o.quantity_issued) AS expected,
                 format('%s eSIMs', e.esims) AS found
          FROM orders o, LATERAL (SELECT count(*) AS esims FROM esims WHERE order_id = o.id) AS e
          WHERE ${ORDERS} AND e.esims <> o.quantity_issued`,
      },
    ],
  },
];

/** What a person has to look after. */
export const STUCK_CHECKS: readonly BookCheck[] = [
  {
    check: 'order_is_not_stuck',
    severity: 'warning',
    what: 'No order or cancellation waits longer than NEEDS_REVIEW_AFTER_MS for its end.',
    advice:
      'Pending: no worker takes it up and needs-review does not list it; is a worker running? Otherwise see ' +
      'GET /internal/v1/orders/needs-review and settle it by POST /internal/v1/orders/{id}/reconcile.',
    walks: [
      {
        table: 'orders',
        parameters: afterMs,
        query: `
          SELECT ${ORDER}, 'an end' AS expected,
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
    what: 'No top-up waits longer than NEEDS_REVIEW_AFTER_MS for its end.',
    advice:
      'Pending: no worker takes it up and needs-review does not list it; is a worker running? Otherwise see ' +
      'GET /internal/v1/topups/needs-review and settle it by POST /internal/v1/topups/{id}/reconcile.',
    walks: [
      {
        table: 'topups',
        parameters: afterMs,
        query: `
          SELECT ${TOPUP}, 'an end' AS expected,
                 format('%s since %s, %s attempts, last error %s', p.status, p.created_at, p.attempts,
                        coalesce(p.last_error, 'none')) AS found
          FROM topups p
          WHERE ${TOPUPS} AND p.status IN ('pending', 'processing')
            AND p.created_at <= now() - $3 * interval '1 millisecond'`,
      },
    ],
  },
];
