import { idFloor } from '../../common/ids.js';
import { type BookCheck, type BookSettings, ORDER_SUBJECT, TOPUP_SUBJECT } from './book-check.js';
import type { KeyRange } from './walked-tables.js';

/**
 * Maximum time between an event and the result that it reports: they share a transaction, but the time in the event's
 * id comes from its process's clock. A later event is found from the event's side.
 */
const NEAR_MS = 3_600_000;

/** Retention days of events, then the bounds of the ids that the range's ends can have produced. */
function nearTheEnds(settings: BookSettings, { firstEndAt, lastEndAt }: KeyRange) {
  const { live, sandbox } = settings.retention.eventDays;
  if (!firstEndAt || !lastEndAt) return [live, sandbox, '', ''];
  const from = new Date(firstEndAt.getTime() - NEAR_MS);
  const to = new Date(lastEndAt.getTime() + NEAR_MS);
  return [live, sandbox, idFloor('evt', from), idFloor('evt', to)];
}

/** Whether the event of a subject that ended at `at` is still retained: a started day is kept whole (D44). */
const keptSince = (at: string, mode: string): string =>
  `${at} >= now() - CASE ${mode} WHEN 'live' THEN $3::int ELSE $4::int END * interval '1 day'`;

/** Events of two types by the id of their subject, separated by partner and mode. */
function eventsBy(idField: string, good: string, bad: string): string {
  return `(SELECT body::jsonb -> 'data' ->> '${idField}' AS about, partner_id, mode,
                  count(*) FILTER (WHERE type = '${good}') AS good, count(*) FILTER (WHERE type = '${bad}') AS bad
           FROM events WHERE type IN ('${good}', '${bad}') AND id >= $5 AND id < $6 GROUP BY 1, 2, 3)`;
}

/** The same for the events of a range. */
function eventsOfRange(idField: string, good: string, bad: string): string {
  return `(SELECT body::jsonb -> 'data' ->> '${idField}' AS about, partner_id, mode, type, created_at
           FROM events WHERE type IN ('${good}', '${bad}') AND id > $1 AND id <= $2)`;
}

const NEAR = (at: string): string =>
  `v.created_at BETWEEN ${at} - interval '1 hour' AND ${at} + interval '1 hour'`;

const HAS_ISSUED = `('issued', 'partially_issued', 'canceling', 'canceled')`;

/**
 * Every ended subject has exactly one event, in both modes (D28). Checked from both sides, because events have no index
 * on their subject: each subject has one event around the time when it ended, and each event's subject ended around
 * then.
 */
export const EVENT_CHECKS: readonly BookCheck[] = [
  {
    check: 'ended_order_has_one_event',
    severity: 'error',
    what: 'A finished order has exactly one order.issued or order.failed within the retention period. An open order has none.',
    advice: 'Tell the partner the current status of the order.',
    walks: [
      {
        table: 'orders',
        parameters: nearTheEnds,
        query: `
          SELECT ${ORDER_SUBJECT},
                 format('%s: order.issued %s, order.failed %s', o.status, o.wanted_good::int, o.wanted_bad::int) AS expected,
                 format('order.issued %s, order.failed %s', coalesce(v.good, 0), coalesce(v.bad, 0)) AS found
          FROM (SELECT *, status IN ${HAS_ISSUED} AS wanted_good, status = 'failed' AS wanted_bad
                FROM orders WHERE id > $1 AND id <= $2) AS o
               LEFT JOIN ${eventsBy('order_id', 'order.issued', 'order.failed')} AS v
                      ON v.about = o.id AND v.partner_id = o.partner_id AND v.mode = o.mode
          WHERE (coalesce(v.good, 0) <> o.wanted_good::int OR coalesce(v.bad, 0) <> o.wanted_bad::int)
            AND ${keptSince('coalesce(o.issued_at, o.failed_at, now())', 'o.mode')}`,
      },
      {
        table: 'events',
        query: `
          SELECT ${ORDER_SUBJECT}, format('%s, at its end', o.status) AS expected,
                 format('%s at %s', v.type, v.created_at) AS found
          FROM ${eventsOfRange('order_id', 'order.issued', 'order.failed')} AS v
               JOIN LATERAL (SELECT * FROM orders WHERE id = v.about OFFSET 0) AS o
                 ON o.partner_id = v.partner_id AND o.mode = v.mode
          WHERE (CASE v.type WHEN 'order.issued' THEN o.status IN ${HAS_ISSUED} ELSE o.status = 'failed' END
                 AND ${NEAR('coalesce(o.issued_at, o.failed_at)')}) IS NOT TRUE`,
      },
    ],
  },
  {
    check: 'ended_topup_has_one_event',
    severity: 'error',
    what: 'A finished top-up has exactly one outcome event within the retention period. An open top-up has none.',
    advice: 'Tell the partner the current status of the top-up.',
    walks: [
      {
        table: 'topups',
        parameters: nearTheEnds,
        query: `
          SELECT ${TOPUP_SUBJECT},
                 format('%s: completed %s, failed %s', p.status, (p.status = 'completed')::int, (p.status = 'failed')::int)
                   AS expected,
                 format('completed %s, failed %s', coalesce(v.good, 0), coalesce(v.bad, 0)) AS found
          FROM topups p
               LEFT JOIN ${eventsBy('topup_id', 'order.topup.completed', 'order.topup.failed')} AS v
                      ON v.about = p.id AND v.partner_id = p.partner_id AND v.mode = p.mode
          WHERE p.id > $1 AND p.id <= $2
            AND (coalesce(v.good, 0) <> (p.status = 'completed')::int
                 OR coalesce(v.bad, 0) <> (p.status = 'failed')::int)
            AND ${keptSince('coalesce(p.completed_at, p.failed_at, now())', 'p.mode')}`,
      },
      {
        table: 'events',
        query: `
          SELECT ${TOPUP_SUBJECT}, format('%s, at its end', p.status) AS expected,
                 format('%s at %s', v.type, v.created_at) AS found
          FROM ${eventsOfRange('topup_id', 'order.topup.completed', 'order.topup.failed')} AS v
               JOIN LATERAL (SELECT * FROM topups WHERE id = v.about OFFSET 0) AS p
                 ON p.partner_id = v.partner_id AND p.mode = v.mode
          WHERE (CASE v.type WHEN 'order.topup.completed' THEN p.status = 'completed' ELSE p.status = 'failed' END
                 AND ${NEAR('coalesce(p.completed_at, p.failed_at)')}) IS NOT TRUE`,
      },
    ],
  },
];
