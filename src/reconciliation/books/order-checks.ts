import { type BookCheck, ORDER_SUBJECT } from './book-check.js';

/** Chargeable live orders of the range with their hold and ledger entries, each by index. */
const LIVE_ORDERS = `
  FROM orders o
       LEFT JOIN LATERAL (SELECT * FROM wallet_holds WHERE order_id = o.id OFFSET 0) AS h ON true
       LEFT JOIN LATERAL (SELECT count(*) AS charges, coalesce(-sum(amount), 0) AS charged FROM ledger_transactions
                          WHERE order_id = o.id AND type = 'charge') AS c ON true
       LEFT JOIN LATERAL (SELECT coalesce(sum(amount), 0) AS refunds FROM ledger_transactions
                          WHERE order_id = o.id AND type = 'refund') AS r ON true
  WHERE o.id > $1 AND o.id <= $2 AND o.mode = 'live' AND o.unit_price_amount > 0`;
const FOUND = `
  format('%s: %s hold of %s, captured %s, refunded %s; %s charges of %s, refunds of %s; says refunded %s', o.status,
         coalesce(h.status, 'no'), coalesce(h.amount, 0), coalesce(h.captured, 0), coalesce(h.refunded, 0),
         c.charges, c.charged, r.refunds, o.refunded_amount) AS found`;
const ISSUED = `(o.status IN ('issued', 'partially_issued', 'canceling')
  OR o.status = 'canceled' AND o.quantity_issued > 0)`;
const APPROVED = `(SELECT coalesce(sum(amount), 0) FROM refund_requests
  WHERE order_id = o.id AND status = 'approved')`;
/** The whole price of canceled eSIMs, and the approved refund requests of the others. */
const REFUNDABLE = `(SELECT coalesce(sum(CASE WHEN e.status = 'canceled' AND e.revoked_at IS NULL THEN o.unit_price_amount ELSE coalesce(q.amount, 0) END), 0)
  FROM esims e LEFT JOIN LATERAL (SELECT sum(amount) AS amount FROM refund_requests
                                  WHERE esim_id = e.id AND status = 'approved') AS q ON true
  WHERE e.order_id = o.id)`;
/** A partner's own revocation refunds nothing (D70). */
const REVOKED_ESIMS = `(SELECT count(*) FROM esims e WHERE e.order_id = o.id AND e.revoked_at IS NOT NULL)`;
/** Nothing is held before the eSIM that the order replaces is canceled. */
const HAS_NOT_STARTED = `(o.replaces IS NOT NULL AND h.status IS NULL AND c.charges = 0 AND r.refunds = 0)`;
const ENDED_WITHOUT = `(o.status = 'failed' OR o.status = 'canceled' AND o.quantity_issued = 0)`;

/** Charges of live orders (D22, D27): each charged amount ends as an issued eSIM or a refund. */
export const ORDER_CHECKS: readonly BookCheck[] = [
  {
    check: 'issued_order_is_charged_once',
    severity: 'error',
    what: 'An issued order has one captured hold and one charge, for the price of its issued eSIMs.',
    advice: 'Compare with the eSIMs of the order; charge or refund the rest with an adjustment.',
    walks: [
      {
        table: 'orders',
        query: `
          SELECT ${ORDER_SUBJECT},
                 format('captured hold of %s, one charge of %s', o.unit_price_amount * o.quantity,
                        o.unit_price_amount * o.quantity_issued) AS expected, ${FOUND}
          ${LIVE_ORDERS} AND ${ISSUED}
            AND (h.status = 'captured' AND h.captured = o.unit_price_amount * o.quantity_issued
                 AND h.amount = o.unit_price_amount * o.quantity
                 AND c.charges = 1 AND c.charged = o.unit_price_amount * o.quantity_issued) IS NOT TRUE`,
      },
    ],
  },
  {
    check: 'failed_order_costs_nothing',
    severity: 'error',
    what: 'An order that ended without an eSIM has a released hold and no charge.',
    advice: 'Return the amount to the partner with an adjustment.',
    walks: [
      {
        table: 'orders',
        query: `
          SELECT ${ORDER_SUBJECT}, format('released hold of %s, no charge', o.unit_price_amount * o.quantity) AS expected,
                 ${FOUND}
          ${LIVE_ORDERS} AND ${ENDED_WITHOUT}
            AND ((h.status = 'released' AND h.amount = o.unit_price_amount * o.quantity AND c.charges = 0
                  AND r.refunds = 0 OR ${HAS_NOT_STARTED})
                 AND o.refunded_amount = o.unit_price_amount * o.quantity) IS NOT TRUE`,
      },
    ],
  },
  {
    check: 'canceled_order_is_refunded',
    severity: 'error',
    what: 'The refunds of a canceled order equal the captured amount, except for revoked eSIMs.',
    advice: 'Refund the rest with an adjustment.',
    walks: [
      {
        table: 'orders',
        query: `
          SELECT ${ORDER_SUBJECT},
                 format('refunds of %s', coalesce(h.captured, 0) - ${REVOKED_ESIMS} * o.unit_price_amount) AS expected,
                 ${FOUND}
          ${LIVE_ORDERS} AND o.status = 'canceled' AND o.quantity_issued > 0
            AND (r.refunds = h.refunded AND h.refunded <= h.captured
                 AND h.refunded >= h.captured - ${REVOKED_ESIMS} * o.unit_price_amount
                 AND o.refunded_amount = h.amount - h.captured + h.refunded) IS NOT TRUE`,
      },
    ],
  },
  {
    check: 'order_refunds_agree',
    severity: 'error',
    what: 'Order, hold and ledger agree on the refunded amount.',
    advice: 'Compare the three. The ledger is authoritative.',
    walks: [
      {
        table: 'orders',
        query: `
          SELECT ${ORDER_SUBJECT}, format('refunds of %s, says refunded %s', h.refunded, h.amount - h.captured + h.refunded)
                   AS expected, ${FOUND}
          ${LIVE_ORDERS} AND o.status IN ('issued', 'partially_issued', 'canceling') AND h.status = 'captured'
            AND (r.refunds <> h.refunded OR o.refunded_amount <> h.amount - h.captured + h.refunded)`,
      },
    ],
  },
  {
    check: 'canceled_esim_is_refunded',
    severity: 'warning',
    what: 'eSIMs of an issued order that a wholesaler canceled were refunded.',
    advice: 'Ask the wholesaler for the reason, and refund the price with an adjustment. Shown for 7 days.',
    walks: [
      {
        table: 'orders',
        query: `
          SELECT ${ORDER_SUBJECT}, format('refunds of %s', ${REFUNDABLE}) AS expected, ${FOUND}
          ${LIVE_ORDERS} AND o.status IN ('issued', 'partially_issued')
            AND EXISTS (SELECT 1 FROM esims e WHERE e.order_id = o.id AND e.status = 'canceled'
                          AND e.revoked_at IS NULL AND e.updated_at > now() - interval '7 days')
            AND r.refunds < ${REFUNDABLE}`,
      },
    ],
  },
  {
    check: 'approved_refund_is_booked_once',
    severity: 'error',
    what: "An order's refunds are its approved refund requests and its canceled eSIMs. No eSIM is refunded beyond its price.",
    advice:
      'Compare the refund requests with the ledger; refund or deduct the difference with an adjustment.',
    walks: [
      {
        table: 'orders',
        query: `
          SELECT ${ORDER_SUBJECT}, format('refunds of %s to %s', ${APPROVED}, ${REFUNDABLE}) AS expected, ${FOUND}
          ${LIVE_ORDERS}
            AND (r.refunds NOT BETWEEN ${APPROVED} AND ${REFUNDABLE}
                 OR EXISTS (SELECT 1 FROM refund_requests WHERE order_id = o.id AND status = 'approved'
                            GROUP BY esim_id HAVING sum(amount) > o.unit_price_amount))`,
      },
    ],
  },
  {
    check: 'open_order_holds_its_price',
    severity: 'error',
    what: 'The full price of an open order is held, and nothing is charged.',
    advice: 'Query the wholesaler (reconcile, requery). Do not settle the order before the hold is repaired.',
    walks: [
      {
        table: 'orders',
        query: `
          SELECT ${ORDER_SUBJECT}, format('active hold of %s, no charge', o.unit_price_amount * o.quantity) AS expected, ${FOUND}
          ${LIVE_ORDERS} AND o.status IN ('pending', 'processing')
            AND (h.status = 'active' AND h.amount = o.unit_price_amount * o.quantity AND c.charges = 0
                 OR o.next_attempt_at IS NULL AND ${HAS_NOT_STARTED}) IS NOT TRUE`,
      },
    ],
  },
];
