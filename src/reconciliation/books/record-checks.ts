import type { BookCheck, BookSettings } from '../difference.js';

/** Whether what ended at `at` still has its event: a day that was begun is kept whole (D44). */
const keptSince = (at: string, mode: string): string =>
  `${at} >= now() - CASE ${mode} WHEN 'live' THEN $1::int ELSE $2::int END * interval '1 day'`;
const eventDays = ({ retention: { eventDays: days } }: BookSettings) => [days.live, days.sandbox];

const afterMs = ({ needsReviewAfterMs }: BookSettings) => [needsReviewAfterMs];
const ORDER = `jsonb_build_object('order', o.id, 'partner', o.partner_id) AS subject`;
const TOPUP = `jsonb_build_object('topup', p.id, 'esim', p.esim_id, 'partner', p.partner_id) AS subject`;

/** Events of two types by the id of what they are about, those of another partner or mode apart. */
function eventsBy(idField: string, good: string, bad: string): string {
  return `(SELECT body::jsonb -> 'data' ->> '${idField}' AS about, partner_id, mode,
                  count(*) FILTER (WHERE type = '${good}') AS good, count(*) FILTER (WHERE type = '${bad}') AS bad
           FROM events WHERE type IN ('${good}', '${bad}') GROUP BY 1, 2, 3)`;
}

/** What orders and top-ups say of themselves, in both modes. */
export const RECORD_CHECKS: readonly BookCheck[] = [
  {
    check: 'sandbox_never_touches_money',
    severity: 'error',
    what: 'Nothing of Sandbox has a hold or a transaction (D26).',
    advice: 'Give the partner back what was taken, by an adjustment.',
    query: `
      SELECT jsonb_build_object(s.kind, s.id, 'partner', s.partner_id) AS subject, 'no money' AS expected,
             format('%s holds, %s transactions', s.holds, s.transactions) AS found
      FROM (SELECT 'order' AS kind, id, partner_id,
                   (SELECT count(*) FROM wallet_holds h WHERE h.order_id = o.id) AS holds,
                   (SELECT count(*) FROM ledger_transactions t WHERE t.order_id = o.id) AS transactions
            FROM orders o
            WHERE mode = 'sandbox' AND (id IN (SELECT order_id FROM wallet_holds)
                                        OR id IN (SELECT order_id FROM ledger_transactions))
            UNION ALL
            SELECT 'topup', id, partner_id,
                   (SELECT count(*) FROM wallet_holds h WHERE h.topup_id = p.id),
                   (SELECT count(*) FROM ledger_transactions t WHERE t.topup_id = p.id)
            FROM topups p
            WHERE mode = 'sandbox' AND (id IN (SELECT topup_id FROM wallet_holds)
                                        OR id IN (SELECT topup_id FROM ledger_transactions))) AS s`,
  },
  {
    check: 'order_has_its_esims',
    severity: 'error',
    what: 'An order has as many eSIMs as it says that it issued.',
    advice: 'Compare with the upstream by the order; the partner was told the eSIMs of order.issued.',
    query: `
      SELECT ${ORDER}, format('%s: %s eSIMs', o.status, o.quantity_issued) AS expected,
             format('%s eSIMs', coalesce(e.esims, 0)) AS found
      FROM orders o LEFT JOIN (SELECT order_id, count(*) AS esims FROM esims GROUP BY order_id) AS e
                           ON e.order_id = o.id
      WHERE coalesce(e.esims, 0) <> o.quantity_issued`,
  },
  {
    check: 'ended_order_has_one_event',
    severity: 'error',
    what: 'An order that has ended has exactly one order.issued or order.failed, as long as events are kept; an open one has none.',
    advice: 'Tell the partner what the order says now.',
    parameters: eventDays,
    query: `
      SELECT ${ORDER},
             format('%s: order.issued %s, order.failed %s', o.status, o.wanted_good::int, o.wanted_bad::int) AS expected,
             format('order.issued %s, order.failed %s', coalesce(v.good, 0), coalesce(v.bad, 0)) AS found
      FROM (SELECT *, status IN ('issued', 'partially_issued', 'canceling', 'canceled') AS wanted_good,
                   status = 'failed' AS wanted_bad FROM orders) AS o
           LEFT JOIN ${eventsBy('order_id', 'order.issued', 'order.failed')} AS v
                  ON v.about = o.id AND v.partner_id = o.partner_id AND v.mode = o.mode
      WHERE (coalesce(v.good, 0) <> o.wanted_good::int OR coalesce(v.bad, 0) <> o.wanted_bad::int)
        AND ${keptSince('coalesce(o.issued_at, o.failed_at, now())', 'o.mode')}`,
  },
  {
    check: 'ended_topup_has_one_event',
    severity: 'error',
    what: 'A top-up that has ended has exactly one event of it, as long as events are kept; an open one has none.',
    advice: 'Tell the partner what the top-up says now.',
    parameters: eventDays,
    query: `
      SELECT ${TOPUP},
             format('%s: completed %s, failed %s', p.status, (p.status = 'completed')::int, (p.status = 'failed')::int)
               AS expected,
             format('completed %s, failed %s', coalesce(v.good, 0), coalesce(v.bad, 0)) AS found
      FROM topups p
           LEFT JOIN ${eventsBy('topup_id', 'order.topup.completed', 'order.topup.failed')} AS v
                  ON v.about = p.id AND v.partner_id = p.partner_id AND v.mode = p.mode
      WHERE (coalesce(v.good, 0) <> (p.status = 'completed')::int
             OR coalesce(v.bad, 0) <> (p.status = 'failed')::int)
        AND ${keptSince('coalesce(p.completed_at, p.failed_at, now())', 'p.mode')}`,
  },
  {
    check: 'order_is_not_stuck',
    severity: 'warning',
    what: 'No order or cancellation waits longer than NEEDS_REVIEW_AFTER_MS for its end.',
    advice:
      'Pending: no worker takes it up and needs-review does not list it; is a worker running? Otherwise see ' +
      'GET /internal/v1/orders/needs-review and settle it by POST /internal/v1/orders/{id}/reconcile.',
    parameters: afterMs,
    query: `
      SELECT ${ORDER}, 'an end' AS expected,
             format('%s since %s, %s attempts, last error %s', o.status, o.since, o.upstream_attempts,
                    coalesce(o.last_error, 'none')) AS found
      FROM (SELECT *, CASE status WHEN 'canceling' THEN coalesce(cancel_requested_at, updated_at)
                                  ELSE created_at END AS since FROM orders) AS o
      WHERE o.status IN ('pending', 'processing', 'canceling')
        AND o.since <= now() - $1 * interval '1 millisecond'`,
  },
  {
    check: 'topup_is_not_stuck',
    severity: 'warning',
    what: 'No top-up waits longer than NEEDS_REVIEW_AFTER_MS for its end.',
    advice:
      'Pending: no worker takes it up and needs-review does not list it; is a worker running? Otherwise see ' +
      'GET /internal/v1/topups/needs-review and settle it by POST /internal/v1/topups/{id}/reconcile.',
    parameters: afterMs,
    query: `
      SELECT ${TOPUP}, 'an end' AS expected,
             format('%s since %s, %s attempts, last error %s', p.status, p.created_at, p.attempts,
                    coalesce(p.last_error, 'none')) AS found
      FROM topups p
      WHERE p.status IN ('pending', 'processing') AND p.created_at <= now() - $1 * interval '1 millisecond'`,
  },
];
