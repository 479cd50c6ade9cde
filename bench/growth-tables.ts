import { idFloor } from '../src/common/ids.js';
import type { Mode } from '../src/common/mode.js';
import { dayOf, partitionName } from '../src/infra/partition-days.js';

export const PARTNERS = 300;
/** Owns a third of all rows. The bench measures this partner's calls. */
export const BIG_PARTNER = 1;
/** Endpoints per partner and mode. Every event goes to all of them. */
export const ENDPOINTS = 4;
/** The number of open rows and of rows past their retention is the same in every database. */
const OLD_ROWS = 2_000;
const OPEN_DELIVERIES = 3_000;
const OPEN_ORDERS = 300;
const PRICE = 110;
const GIGABYTE = 1_000_000_000;
const PACKAGE = `'pkg_fr_1gb_7d'`;

/** Rows `first` to `first + count - 1`, spread over a period within one day. */
export interface Numbers {
  readonly first: number;
  readonly count: number;
  readonly fromMs: number;
  readonly toMs: number;
}

/**
 * One day's partition of a table. The fill creates it standalone, inserts the rows and then attaches it, which builds
 * its indexes.
 */
export interface DayTable {
  readonly table: string;
  readonly partition: string;
  readonly bounds: string;
  readonly insert: string;
}

/**
 * The fill's own tables and functions. An id is a ULID of its row's time. A row number yields the same id in every
 * table, so no statement needs to read another table.
 */
export const CREATE_FILL = `
  CREATE SCHEMA IF NOT EXISTS growth;
  CREATE TABLE IF NOT EXISTS growth.scale (orders bigint NOT NULL, deliveries bigint NOT NULL, anchor timestamptz NOT NULL);
  CREATE TABLE IF NOT EXISTS growth.steps (name text PRIMARY KEY, rows bigint NOT NULL);
  CREATE OR REPLACE FUNCTION growth.id(prefix text, ms bigint, n bigint) RETURNS text LANGUAGE sql IMMUTABLE AS $$
    SELECT prefix || '_' || ${timeDigits()} || upper(left(md5(n::text), 16))
  $$;
  CREATE OR REPLACE FUNCTION growth.owned(prefix text, partner int, slot int) RETURNS text LANGUAGE sql IMMUTABLE AS $$
    SELECT prefix || '_' || lpad((partner * 100 + slot)::text, 26, '0')
  $$;
`;

/** SQL that encodes 48 bits of milliseconds as ten digits of Crockford's base 32. */
function timeDigits(): string {
  return Array.from(
    { length: 10 },
    (_, index) => `substr('0123456789ABCDEFGHJKMNPQRSTVWXYZ', 1 + ((ms >> ${45 - 5 * index}) & 31)::int, 1)`,
  ).join(' || ');
}

/** The same id as the SQL function `growth.owned` returns. */
export function ownedId(prefix: string, partner: number, slot: number): string {
  return `${prefix}_${String(partner * 100 + slot).padStart(26, '0')}`;
}

/** Slots within a partner's ids, by mode: its keys and its endpoints. */
export const keySlot = (mode: Mode): number => (mode === 'live' ? 1 : 2);
export const endpointSlot = (mode: Mode, nth: number): number => 10 + (mode === 'live' ? 0 : ENDPOINTS) + nth;

/**
 * SQL of a FROM item `r` with each row's number, time and partner. Partner 1 owns a third of the rows. Of the others,
 * partners with smaller numbers own more.
 */
function rowsOf({ first, count, fromMs, toMs }: Numbers): string {
  return `(
    SELECT n, n - ${first} AS k, h, ms, to_timestamp(ms / 1000.0) AS at,
           CASE WHEN h % 3 = 0 THEN 1
                ELSE 2 + floor(${PARTNERS - 1} * power((h / 3 % 1000000) / 1000000.0::float8, 2))::int END AS p
    FROM (SELECT n, hashint8(n)::bigint & 2147483647 AS h,
                 ${fromMs} + ((n - ${first})::float8 * ${toMs - fromMs} / ${count})::bigint AS ms
          FROM generate_series(${first}::bigint, ${first + count - 1}) AS n OFFSET 0) AS numbered
    OFFSET 0) AS r`;
}

const PARTNER_ID = `growth.owned('ptn', p, 0)`;
const ORDER_ID = `growth.id('ord', ms, n)`;
const ESIM_ID = `growth.id('esim', ms, n)`;
/** Three of ten orders are Sandbox orders. */
const ORDER_MODE = `CASE WHEN h / 7 % 10 < 3 THEN 'sandbox' ELSE 'live' END`;
/** Three of a hundred orders fail. The others have an eSIM; two of those are canceled. */
const ORDER_STATUS = `CASE WHEN n % 100 < 3 THEN 'failed' WHEN n % 100 < 5 THEN 'canceled' ELSE 'issued' END`;
const PROVIDER = `CASE WHEN mode = 'sandbox' THEN 'sandbox' ELSE 'esim_access' END`;
const COST = `CASE WHEN mode = 'live' THEN 600000 END, CASE WHEN mode = 'live' THEN 'USD' END`;
/** Most old eSIMs have expired. Young ones wait to be installed or are in use. */
const ESIM_STATUS = `CASE WHEN status = 'canceled' THEN 'canceled' WHEN h / 11 % 10 < 3 THEN 'issued'
  WHEN at < now() - interval '7 days' THEN 'expired' WHEN n % 50 = 7 THEN 'suspended' WHEN n % 50 = 8 THEN 'depleted' ELSE 'active' END`;

/** One day's finished orders with their eSIMs, top-ups, money and provider rows. */
export function orderStatements(numbers: Numbers): readonly string[] {
  const rows = `(SELECT *, ${ORDER_MODE} AS mode, ${ORDER_STATUS} AS status FROM ${rowsOf(numbers)} OFFSET 0) AS r`;
  const paid = `${rows} WHERE mode = 'live' AND n % 100 >= 5`;
  return [
    `INSERT INTO orders (id, partner_id, mode, status, package_id, quantity, quantity_issued, quantity_failed,
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
    `INSERT INTO esims (id, partner_id, mode, order_id, package_id, iccid, status, profile_status, apn, install_secrets,
       unlimited, total_bytes, used_bytes, usage_as_of, usage_source, validity_days, activation_policy, install_by,
       activated_at, expires_at, provider, provider_esim_id, created_at, updated_at)
     SELECT ${ESIM_ID}, ${PARTNER_ID}, mode, ${ORDER_ID}, ${PACKAGE}, '8910' || lpad(n::text, 16, '0'), state,
       CASE state WHEN 'issued' THEN 'released' ELSE 'enabled' END, 'internet', repeat(md5(n::text), 6), false, ${GIGABYTE},
       CASE state WHEN 'issued' THEN 0 ELSE h % ${GIGABYTE} END, at, CASE mode WHEN 'sandbox' THEN 'simulated' ELSE 'poll' END,
       7, 'on_first_use', at + interval '400 days', CASE WHEN state <> 'issued' THEN at + interval '1 hour' END,
       CASE WHEN state = 'expired' THEN at + interval '7 days' WHEN state <> 'issued' THEN at + interval '400 days' END,
       ${PROVIDER}, 'e' || n, at, at
     FROM (SELECT *, ${ESIM_STATUS} AS state FROM ${rows} WHERE status <> 'failed' OFFSET 0) AS e`,
    `INSERT INTO topups (id, partner_id, mode, esim_id, iccid, package_id, status, price_amount, currency, data_added_bytes,
       validity_added_days, reference, provider, provider_reference, upstream_package_id, unit_cost_micros,
       unit_cost_currency, failure_code, attempts, fence, accepted_request_id, created_at, updated_at, completed_at, failed_at)
     SELECT growth.id('top', ms, n), ${PARTNER_ID}, mode, ${ESIM_ID}, '8910' || lpad(n::text, 16, '0'), ${PACKAGE},
       CASE WHEN n % 400 = 10 THEN 'failed' ELSE 'completed' END, ${PRICE}, 'USD', ${GIGABYTE}, 7,
       CASE WHEN n % 40 = 10 THEN 'top-' || n END, ${PROVIDER}, growth.id('prv', ms, -n), 'TOPUP_PFR1D7', ${COST},
       CASE WHEN n % 400 = 10 THEN 'provider_rejected' END, 1, 1, growth.id('req', ms, -n), at, at,
       CASE WHEN n % 400 <> 10 THEN at END, CASE WHEN n % 400 = 10 THEN at END
     FROM ${rows} WHERE n % 20 = 10`,
    // A wallet's id equals its partner's number.
    `INSERT INTO wallet_holds (wallet_id, order_id, amount, captured, status, created_at, resolved_at)
     SELECT p, ${ORDER_ID}, ${PRICE}, ${PRICE}, 'captured', at, at FROM ${paid}`,
    `INSERT INTO ledger_transactions (id, wallet_id, partner_id, currency, type, amount, balance_after, order_id, created_at)
     SELECT growth.id('txn', ms, n), p, ${PARTNER_ID}, 'USD', 'charge', -${PRICE}, 1000000000, ${ORDER_ID}, at FROM ${paid}`,
    `INSERT INTO ledger_entries (transaction_id, seq, account, amount, currency)
     SELECT growth.id('txn', ms, n), seq, CASE seq WHEN 1 THEN 'partner_wallet:' || p ELSE 'revenue:USD' END,
       CASE seq WHEN 1 THEN -${PRICE} ELSE ${PRICE} END, 'USD'
     FROM (SELECT * FROM ${paid}) AS moved, generate_series(1, 2) AS seq`,
    `INSERT INTO sandbox_upstream_orders (reference, package_id, quantity, outcome, profiles, ready_at, created_at)
     SELECT growth.id('prv', ms, n), ${PACKAGE}, 1, 'provisioned', repeat(md5(n::text), 3), at, at
     FROM ${rows} WHERE mode = 'sandbox'`,
  ];
}

const EVENT_ID = `growth.id('evt', ms, n)`;
const EVENT_TYPE = `CASE WHEN h / 13 % 20 < 11 THEN 'order.issued' WHEN h / 13 % 20 < 17 THEN 'esim.activated'
  WHEN h / 13 % 20 < 19 THEN 'esim.usage.threshold' ELSE 'esim.expired' END`;
const DELIVERY_ID = `growth.id('dlv', ms, n * ${ENDPOINTS} + j)`;
const DELIVERY_STATUS = `CASE WHEN (h + j) % 100 < 97 THEN 'delivered' WHEN (h + j) % 100 < 99 THEN 'failed' ELSE 'discarded' END`;
const endpointId = (mode: Mode): string => `growth.owned('whe', p, ${endpointSlot(mode, 0)} + j)`;
/** One row per event and endpoint. */
const deliveryRows = (numbers: Numbers): string =>
  `(SELECT *, ${DELIVERY_STATUS} AS status FROM ${rowsOf(numbers)}, generate_series(0, ${ENDPOINTS - 1}) AS j OFFSET 0) AS d`;

/**
 * One day's events in one mode, about as long as real ones.
 * @param position feed position of the first event
 */
export function eventsOf(mode: Mode, numbers: Numbers, position: number): DayTable {
  return ofDay(
    `events_${mode}`,
    numbers,
    `(id, partner_id, mode, type, body, position, created_at)
     SELECT ${EVENT_ID}, ${PARTNER_ID}, '${mode}', ${EVENT_TYPE},
       '{"id":"' || ${EVENT_ID} || '","type":"' || ${EVENT_TYPE} || '","created_at":"' || at || '","data":{"order_id":"' ||
       growth.id('ord', ms, n) || '","esim_id":"' || growth.id('esim', ms, n) || '","iccid":"8910' || lpad(n::text, 16, '0') || '"}}',
       ${position} + k, at
     FROM ${rowsOf(numbers)}`,
    'evt',
  );
}

/** One day's finished deliveries in one mode. */
export function deliveriesOf(mode: Mode, numbers: Numbers): DayTable {
  return ofDay(
    `webhook_deliveries_${mode}`,
    numbers,
    `(id, endpoint_id, partner_id, mode, event_id, event_type, kind, status, attempt_count, counted_attempts,
      created_at, delivered_at, failed_at, ended_at)
     SELECT ${DELIVERY_ID}, ${endpointId(mode)}, ${PARTNER_ID}, '${mode}', ${EVENT_ID}, ${EVENT_TYPE}, 'event', status, 1, 1,
       at, CASE WHEN status = 'delivered' THEN at END, CASE WHEN status = 'failed' THEN at END, at
     FROM ${deliveryRows(numbers)}`,
  );
}

/** The last attempt of each of the day's deliveries in the given modes. */
export function attemptsOf(modes: readonly (readonly [Mode, Numbers])[]): DayTable {
  const selects = modes.map(
    ([mode, numbers]) => `SELECT ${DELIVERY_ID}, ${endpointId(mode)}, ${PARTNER_ID}, 1, at,
       CASE WHEN status = 'delivered' THEN 'delivered' ELSE 'failed' END,
       CASE WHEN status = 'delivered' THEN 200 ELSE 503 END, (h % 400)::int, at FROM ${deliveryRows(numbers)}`,
  );
  return ofDay(
    'webhook_attempts',
    modes[0]![1],
    `(delivery_id, endpoint_id, partner_id, number, started_at, outcome, status_code, latency_ms, recorded_at)
     ${selects.join(' UNION ALL ')}`,
  );
}

/** One day's call log. */
export function callsOf(numbers: Numbers): DayTable {
  return ofDay(
    'api_calls',
    numbers,
    `(request_id, key_id, partner_id, mode, method, route, path, status, latency_ms, remote_address, created_at)
     SELECT growth.id('req', ms, n), growth.owned('key', p, CASE WHEN n % 10 < 3 THEN ${keySlot('sandbox')} ELSE ${keySlot('live')} END), ${PARTNER_ID},
       CASE WHEN n % 10 < 3 THEN 'sandbox' ELSE 'live' END, CASE WHEN n % 3 = 0 THEN 'POST' ELSE 'GET' END, '/v1/orders',
       '/v1/orders', CASE WHEN n % 100 = 1 THEN 404 WHEN n % 1000 = 2 THEN 500 WHEN n % 3 = 0 THEN 202 ELSE 200 END,
       h % 50, '203.0.113.7', at
     FROM ${rowsOf(numbers)}`,
  );
}

function ofDay(table: string, { fromMs }: Numbers, insert: string, idPrefix?: 'evt'): DayTable {
  const day = dayOf(new Date(fromMs));
  const bound = (at: Date): string => (idPrefix ? idFloor(idPrefix, at) : at.toISOString());
  const partition = partitionName(table, day);
  return {
    table,
    partition,
    bounds: `FROM ('${bound(day)}') TO ('${bound(dayOf(day, 1))}')`,
    insert: `INSERT INTO ${partition} ${insert}`,
  };
}

/** Partners with their keys, wallets and endpoints. */
export function ownerStatements(): readonly string[] {
  const partners = `generate_series(1, ${PARTNERS}) AS p`;
  return [
    `INSERT INTO partners (id, name, status, created_at)
     SELECT growth.owned('ptn', p, 0), 'Growth ' || p, CASE WHEN p % 50 = 49 THEN 'suspended' ELSE 'active' END,
       now() - interval '200 days' + p * interval '1 s' FROM ${partners}`,
    `INSERT INTO wallets (id, partner_id, currency, posted) OVERRIDING SYSTEM VALUE
     SELECT p, growth.owned('ptn', p, 0), 'USD', 1000000000000 FROM ${partners}`,
    ...(['live', 'sandbox'] as const).flatMap((mode) => [
      `INSERT INTO api_keys (id, partner_id, mode, hash, last4)
       SELECT growth.owned('key', p, ${keySlot(mode)}), growth.owned('ptn', p, 0), '${mode}',
         sha256(convert_to('${mode}' || p, 'UTF8')), lpad(p::text, 4, '0') FROM ${partners}`,
      // No worker runs, so nothing calls the URL. Each partner's last endpoint is disabled.
      `INSERT INTO webhook_endpoints (id, partner_id, mode, url, secret, enabled, created_at)
       SELECT growth.owned('whe', p, ${endpointSlot(mode, 0)} + j), growth.owned('ptn', p, 0), '${mode}',
         'https://receiver.invalid/' || p, 'sealed', j < ${ENDPOINTS - 1}, now() - interval '150 days'
       FROM ${partners}, generate_series(0, ${ENDPOINTS - 1}) AS j`,
    ]),
  ];
}

/** Open rows, rows past their retention, and the smaller tables. */
export function restStatements(orders: number): readonly string[] {
  const many = Math.max(OLD_ROWS, Math.floor(orders / 200));
  const someMs = `(extract(epoch FROM now()) * 1000)::bigint - i * 10`;
  const spread = `now() - i * interval '95 days' / ${many}`;
  const partner = `growth.owned('ptn', 1 + (i % ${PARTNERS})::int, 0)`;
  const series = (count: number): string => `generate_series(1, ${count}::bigint) AS i`;
  const id = (prefix: string, days: number): string =>
    `growth.id('${prefix}', (extract(epoch FROM now() - interval '${days} days') * 1000)::bigint, i)`;
  return [
    `INSERT INTO orders (id, partner_id, mode, status, package_id, quantity, unit_price_amount, currency, provider,
       provider_reference, accepted_request_id, upstream_package_id, data_bytes, validity_days, activation_policy, next_attempt_at)
     SELECT growth.id('ord', ${someMs}, -i), growth.owned('ptn', 1 + (i % 20)::int, 0), 'sandbox', 'processing', ${PACKAGE}, 1, ${PRICE},
       'USD', 'sandbox', growth.id('prv', ${someMs}, -i), growth.id('req', ${someMs}, -i), 'PFR1D7', ${GIGABYTE}, 7,
       'on_first_use', now() + (i % 3 - 1) * interval '1 hour'
     FROM ${series(OPEN_ORDERS)}`,
    // A tenth of them belong to disabled endpoints and are past the retention of held deliveries.
    `INSERT INTO webhook_deliveries (id, endpoint_id, partner_id, mode, event_id, event_type, kind, status, next_attempt_at, created_at)
     SELECT growth.id('dlv', ${someMs}, -i), growth.owned('whe', 1 + (i % 40)::int, 10 + CASE WHEN i % 10 = 0 THEN ${ENDPOINTS - 1} ELSE (i % 3)::int END),
       growth.owned('ptn', 1 + (i % 40)::int, 0), 'live', e.id, 'order.issued', 'event', 'pending',
       now() - i * interval '10 ms', CASE WHEN i % 10 = 0 THEN now() - interval '95 days' ELSE now() - i * interval '10 ms' END
     FROM ${series(OPEN_DELIVERIES)},
       (SELECT id FROM events_live WHERE id < growth.id('evt', (extract(epoch FROM now()) * 1000)::bigint, 0) ORDER BY id DESC LIMIT 1) AS e`,
    `INSERT INTO audit_log (id, actor, action, partner_id, subject_id, created_at)
     SELECT ${id('aud', 1)}, 'portal', CASE WHEN i % 9 = 0 THEN 'partner.suspended' ELSE 'key.created' END,
       ${partner}, growth.owned('key', 1 + (i % ${PARTNERS})::int, 1), ${spread} FROM ${series(many)}`,
    `INSERT INTO alerts (id, type, partner_id, subject_id, created_at)
     SELECT ${id('alr', 1)}, CASE WHEN i % 9 = 0 THEN 'balance.low' ELSE 'endpoint.blocked' END,
       ${partner}, growth.owned('whe', 1 + (i % ${PARTNERS})::int, 10), ${spread} FROM ${series(many)}`,
    `INSERT INTO package_price_history (package_id, cost_micros, price_amount, currency, available, changed_at)
     SELECT ${PACKAGE}, 600000, ${PRICE}, 'USD', true, ${spread} - (i % 2) * interval '401 days' FROM ${series(many)}`,
    `INSERT INTO catalog_syncs (id, status, requested_at, started_at, ended_at)
     SELECT ${id('syn', 1)}, 'completed', now() - i * interval '1 hour', now() - i * interval '1 hour', now() - i * interval '1 hour'
     FROM ${series(OLD_ROWS)}`,
    `INSERT INTO webhook_backlog_jobs (id, kind, step, endpoint_id, partner_id, status, since, until, statuses, created_at, ended_at)
     SELECT ${id('rpl', 40)}, 'replay', 'await', growth.owned('whe', 1, 10), growth.owned('ptn', 1, 0), 'completed', now() - interval '41 days',
       now() - interval '40 days', '{failed}', now() - interval '40 days', now() - interval '40 days' FROM ${series(OLD_ROWS)}`,
    `INSERT INTO webhook_endpoints (id, partner_id, mode, url, secret, enabled, created_at, deleted_at)
     SELECT ${id('whe', 40)}, ${partner}, 'live', 'https://receiver.invalid/', 'sealed', false,
       now() - interval '60 days', now() - interval '40 days' FROM ${series(OLD_ROWS)}`,
    `INSERT INTO idempotency_keys (scope, key, fingerprint, request_id, status, body, expires_at)
     SELECT 'growth', 'k' || i, '\\x00', ${id('req', 1)}, 202, repeat('x', 400),
       CASE WHEN i <= ${OLD_ROWS} THEN now() - interval '1 hour' ELSE now() + interval '30 days' END FROM ${series(many)}`,
    `INSERT INTO event_feed_days (partition_name, mode, first_position, last_position)
     SELECT c.relname, e.mode, min(e.position), max(e.position) FROM events e JOIN pg_class c ON c.oid = e.tableoid
     WHERE e.position IS NOT NULL GROUP BY 1, 2`,
    `SELECT setval('event_positions', (SELECT max(position) + 1 FROM events))`,
  ];
}
