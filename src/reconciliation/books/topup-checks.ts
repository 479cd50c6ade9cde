import type { BookCheck } from '../difference.js';

const SUBJECT = `jsonb_build_object('topup', p.id, 'esim', p.esim_id, 'partner', p.partner_id) AS subject`;
/** Live top-ups that cost something, with their hold and what the ledger says of them. */
const LIVE_TOPUPS = `
  FROM topups p
       LEFT JOIN wallet_holds h ON h.topup_id = p.id
       LEFT JOIN (SELECT topup_id, count(*) FILTER (WHERE type = 'charge') AS charges,
                         coalesce(-sum(amount) FILTER (WHERE type = 'charge'), 0) AS charged,
                         coalesce(sum(amount) FILTER (WHERE type = 'refund'), 0) AS refunds
                  FROM ledger_transactions WHERE topup_id IS NOT NULL GROUP BY topup_id) AS t ON t.topup_id = p.id
  WHERE p.mode = 'live' AND p.price_amount > 0`;
const FOUND = `
  format('%s: %s hold of %s, captured %s, refunded %s; %s charges of %s, refunds of %s', p.status,
         coalesce(h.status, 'no'), coalesce(h.amount, 0), coalesce(h.captured, 0), coalesce(h.refunded, 0),
         coalesce(t.charges, 0), coalesce(t.charged, 0), coalesce(t.refunds, 0)) AS found`;

/** What live top-ups cost (D27). */
export const TOPUP_CHECKS: readonly BookCheck[] = [
  {
    check: 'completed_topup_is_charged_once',
    severity: 'error',
    what: 'A completed top-up has one captured hold and one charge, of its price.',
    advice: 'Compare with the eSIM; charge or refund the rest by an adjustment.',
    query: `
      SELECT ${SUBJECT}, format('captured hold and one charge of %s', p.price_amount) AS expected, ${FOUND}
      ${LIVE_TOPUPS} AND p.status = 'completed'
        AND (h.status = 'captured' AND h.captured = p.price_amount AND h.amount = p.price_amount
             AND t.charges = 1 AND t.charged = p.price_amount AND t.refunds = h.refunded) IS NOT TRUE`,
  },
  {
    check: 'failed_topup_costs_nothing',
    severity: 'error',
    what: 'A failed top-up has a released hold and no charge.',
    advice: 'Give the partner back what was taken, by an adjustment.',
    query: `
      SELECT ${SUBJECT}, format('released hold of %s, no charge', p.price_amount) AS expected, ${FOUND}
      ${LIVE_TOPUPS} AND p.status = 'failed'
        AND (h.status = 'released' AND h.amount = p.price_amount AND coalesce(t.charges, 0) = 0
             AND coalesce(t.refunds, 0) = 0) IS NOT TRUE`,
  },
  {
    check: 'open_topup_holds_its_price',
    severity: 'error',
    what: 'The price of a top-up without an end is held, and nothing of it charged.',
    advice: 'Look at the eSIM upstream before anything is settled by hand.',
    query: `
      SELECT ${SUBJECT}, format('active hold of %s, no charge', p.price_amount) AS expected, ${FOUND}
      ${LIVE_TOPUPS} AND p.status IN ('pending', 'processing')
        AND (h.status = 'active' AND h.amount = p.price_amount AND coalesce(t.charges, 0) = 0) IS NOT TRUE`,
  },
];
