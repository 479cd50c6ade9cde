import { type BookCheck, TOPUP_SUBJECT } from './book-check.js';

/** Chargeable live top-ups of the range with their hold and ledger entries, each by index. */
const LIVE_TOPUPS = `
  FROM topups p
       LEFT JOIN LATERAL (SELECT * FROM wallet_holds WHERE topup_id = p.id OFFSET 0) AS h ON true
       LEFT JOIN LATERAL (SELECT count(*) AS charges, coalesce(-sum(amount), 0) AS charged FROM ledger_transactions
                          WHERE topup_id = p.id AND type = 'charge') AS c ON true
       LEFT JOIN LATERAL (SELECT coalesce(sum(amount), 0) AS refunds FROM ledger_transactions
                          WHERE topup_id = p.id AND type = 'refund') AS r ON true
  WHERE p.id > $1 AND p.id <= $2 AND p.mode = 'live' AND p.price_amount > 0`;
const FOUND = `
  format('%s: %s hold of %s, captured %s, refunded %s; %s charges of %s, refunds of %s', p.status,
         coalesce(h.status, 'no'), coalesce(h.amount, 0), coalesce(h.captured, 0), coalesce(h.refunded, 0),
         c.charges, c.charged, r.refunds) AS found`;

/** Charges of live top-ups (D27). */
export const TOPUP_CHECKS: readonly BookCheck[] = [
  {
    check: 'completed_topup_is_charged_once',
    severity: 'error',
    what: 'A completed top-up has one captured hold and one charge, for its price.',
    advice: 'Compare with the eSIM; charge or refund the rest with an adjustment.',
    walks: [
      {
        table: 'topups',
        query: `
          SELECT ${TOPUP_SUBJECT}, format('captured hold and one charge of %s', p.price_amount) AS expected, ${FOUND}
          ${LIVE_TOPUPS} AND p.status = 'completed'
            AND (h.status = 'captured' AND h.captured = p.price_amount AND h.amount = p.price_amount
                 AND c.charges = 1 AND c.charged = p.price_amount AND r.refunds = h.refunded) IS NOT TRUE`,
      },
    ],
  },
  {
    check: 'failed_topup_costs_nothing',
    severity: 'error',
    what: 'A failed top-up has a released hold and no charge.',
    advice: 'Return the amount to the partner with an adjustment.',
    walks: [
      {
        table: 'topups',
        query: `
          SELECT ${TOPUP_SUBJECT}, format('released hold of %s, no charge', p.price_amount) AS expected, ${FOUND}
          ${LIVE_TOPUPS} AND p.status = 'failed'
            AND (h.status = 'released' AND h.amount = p.price_amount AND c.charges = 0
                 AND r.refunds = 0) IS NOT TRUE`,
      },
    ],
  },
  {
    check: 'open_topup_holds_its_price',
    severity: 'error',
    what: 'The price of an open top-up is held, and nothing is charged.',
    advice: 'Check the eSIM at the wholesaler before you settle anything manually.',
    walks: [
      {
        table: 'topups',
        query: `
          SELECT ${TOPUP_SUBJECT}, format('active hold of %s, no charge', p.price_amount) AS expected, ${FOUND}
          ${LIVE_TOPUPS} AND p.status IN ('pending', 'processing')
            AND (h.status = 'active' AND h.amount = p.price_amount AND c.charges = 0) IS NOT TRUE`,
      },
    ],
  },
];
