import { type Numbers, ORDER_MODE, PARTNER_ID, rowsOf } from './fill-sql.js';

/** One INSERT of a fill. */
export interface Statement {
  readonly table: string;
  readonly sql: string;
}

const PACKAGE = `'pkg_fr_1gb_7d'`;
const PRICE = 110;
const GIGABYTE = 1_000_000_000;
const ORDER_ID = `growth.id('ord', ms, n)`;
const ESIM_ID = `growth.id('esim', ms, n)`;
/** Three of a hundred orders fail; the others have an eSIM, of which two are canceled. */
const ORDER_STATUS = `CASE WHEN n % 100 < 3 THEN 'failed' WHEN n % 100 < 5 THEN 'canceled' ELSE 'issued' END`;
const HAS_ESIM = `n % 100 >= 3`;
const IS_PAID = `n % 100 >= 5`;
const HAS_TOPUP = `n % 20 = 10`;
const PROVIDER = `CASE WHEN mode = 'sandbox' THEN 'sandbox' ELSE 'esim_access' END`;
const COST = `CASE WHEN mode = 'live' THEN 600000 END, CASE WHEN mode = 'live' THEN 'USD' END`;

/** A day of orders with what they brought about. Nobody works on them any more. */
export function orderStatements(numbers: Numbers): readonly Statement[] {
  const rows = `(SELECT *, ${ORDER_MODE} AS mode, ${ORDER_STATUS} AS status FROM ${rowsOf(numbers)} OFFSET 0) AS r`;
  return [orders(rows), esims(rows), topups(rows), ...money(rows), upstream(rows)];
}

function orders(rows: string): Statement {
  return {
    table: 'orders',
    sql: `INSERT INTO orders (id, partner_id, mode, status, package_id, quantity, quantity_issued, quantity_failed,
            unit_price_amount, refunded_amount, currency, reference, provider, provider_reference, failure_code,
            failure_reason, upstream_attempts, fence, accepted_request_id, created_at, updated_at, issued_at, failed_at,
            upstream_package_id, unit_cost_micros, unit_cost_currency, data_bytes, validity_days, activation_policy)
          SELECT ${ORDER_ID}, ${PARTNER_ID}, mode, status, ${PACKAGE}, 1, (status <> 'failed')::int, (status = 'failed')::int,
            ${PRICE}, CASE WHEN status = 'issued' THEN 0 ELSE ${PRICE} END, 'USD', CASE WHEN n % 4 = 0 THEN 'ref-' || n END,
            ${PROVIDER}, growth.id('prv', ms, n), CASE WHEN status = 'failed' THEN 'provider_rejected' END,
            CASE WHEN status = 'failed' THEN 'The provider refused the order.' END, 1, 1, growth.id('req', ms, n), at,
            at + interval '2 s', CASE WHEN status <> 'failed' THEN at + interval '2 s' END,
            CASE WHEN status = 'failed' THEN at + interval '2 s' END,
            'PFR1D7', ${COST}, ${GIGABYTE}, 7, 'on_first_use'
          FROM ${rows}`,
  };
}

function esims(rows: string): Statement {
  // An old one has mostly expired; a young one waits to be installed, or is in use.
  const status = `CASE WHEN status = 'canceled' THEN 'canceled' WHEN h / 11 % 10 < 3 THEN 'issued'
    WHEN at < now() - interval '7 days' THEN 'expired' WHEN n % 50 = 7 THEN 'suspended' WHEN n % 50 = 8 THEN 'depleted' ELSE 'active' END`;
  return {
    table: 'esims',
    sql: `INSERT INTO esims (id, partner_id, mode, order_id, package_id, iccid, status, profile_status, apn, install_secrets,
            unlimited, total_bytes, used_bytes, usage_as_of, usage_source, validity_days, activation_policy, install_by,
            activated_at, expires_at, provider, provider_esim_id, created_at, updated_at)
          SELECT ${ESIM_ID}, ${PARTNER_ID}, mode, ${ORDER_ID}, ${PACKAGE}, '8910' || lpad(n::text, 16, '0'), state,
            CASE state WHEN 'issued' THEN 'released' ELSE 'enabled' END, 'internet', repeat(md5(n::text), 6), false, ${GIGABYTE},
            CASE state WHEN 'issued' THEN 0 ELSE h % ${GIGABYTE} END, at, CASE mode WHEN 'sandbox' THEN 'simulated' ELSE 'poll' END,
            7, 'on_first_use', at + interval '400 days', CASE WHEN state <> 'issued' THEN at + interval '1 hour' END,
            CASE WHEN state = 'expired' THEN at + interval '7 days' WHEN state <> 'issued' THEN at + interval '400 days' END,
            ${PROVIDER}, 'e' || n, at, at
          FROM (SELECT *, ${status} AS state FROM ${rows} WHERE ${HAS_ESIM} OFFSET 0) AS e`,
  };
}

function topups(rows: string): Statement {
  return {
    table: 'topups',
    sql: `INSERT INTO topups (id, partner_id, mode, esim_id, iccid, package_id, status, price_amount, currency, data_added_bytes,
            validity_added_days, reference, provider, provider_reference, upstream_package_id, unit_cost_micros,
            unit_cost_currency, failure_code, attempts, fence, accepted_request_id, created_at, updated_at, completed_at, failed_at)
          SELECT growth.id('top', ms, n), ${PARTNER_ID}, mode, ${ESIM_ID}, '8910' || lpad(n::text, 16, '0'), ${PACKAGE},
            CASE WHEN n % 400 = 10 THEN 'failed' ELSE 'completed' END, ${PRICE}, 'USD', ${GIGABYTE}, 7,
            CASE WHEN n % 40 = 10 THEN 'top-' || n END, ${PROVIDER}, growth.id('prv', ms, -n), 'TOPUP_PFR1D7', ${COST},
            CASE WHEN n % 400 = 10 THEN 'provider_rejected' END, 1, 1, growth.id('req', ms, -n), at, at,
            CASE WHEN n % 400 <> 10 THEN at END, CASE WHEN n % 400 = 10 THEN at END
          FROM ${rows} WHERE ${HAS_TOPUP}`,
  };
}

/** What a live order that was issued has moved; wallets have the number of their partner. */
function money(rows: string): Statement[] {
  const paid = `${rows} WHERE mode = 'live' AND ${IS_PAID}`;
  return [
    {
      table: 'wallet_holds',
      sql: `INSERT INTO wallet_holds (wallet_id, order_id, amount, captured, status, created_at, resolved_at)
            SELECT p, ${ORDER_ID}, ${PRICE}, ${PRICE}, 'captured', at, at FROM ${paid}`,
    },
    {
      table: 'ledger_transactions',
      sql: `INSERT INTO ledger_transactions (id, wallet_id, partner_id, currency, type, amount, balance_after, order_id, created_at)
            SELECT growth.id('txn', ms, n), p, ${PARTNER_ID}, 'USD', 'charge', -${PRICE}, 1000000000, ${ORDER_ID}, at FROM ${paid}`,
    },
    {
      table: 'ledger_entries',
      sql: `INSERT INTO ledger_entries (transaction_id, seq, account, amount, currency)
            SELECT growth.id('txn', ms, n), seq, CASE seq WHEN 1 THEN 'partner_wallet:' || p ELSE 'revenue:USD' END,
              CASE seq WHEN 1 THEN -${PRICE} ELSE ${PRICE} END, 'USD'
            FROM (SELECT * FROM ${paid}) AS moved, generate_series(1, 2) AS seq`,
    },
  ];
}

/** What the simulated provider remembers. */
function upstream(rows: string): Statement {
  return {
    table: 'sandbox_upstream_orders',
    sql: `INSERT INTO sandbox_upstream_orders (reference, package_id, quantity, outcome, profiles, ready_at, created_at)
          SELECT growth.id('prv', ms, n), ${PACKAGE}, 1, 'provisioned', repeat(md5(n::text), 3), at, at
          FROM ${rows} WHERE mode = 'sandbox'`,
  };
}
