import type { Statement } from './fill-orders.js';
import { endpointSlot, keySlot } from './fill-sql.js';
import { ENDPOINTS, type GrowthScale, PARTNERS } from './scale.js';

/** Rows past their retention, or open, are as many in every database: what is purged or due is no matter of growth. */
const OLD_ROWS = 2_000;
const OPEN_DELIVERIES = 3_000;
const OPEN_ORDERS = 300;
const MODES = ['live', 'sandbox'] as const;

/** Who owns all that follows: partners with their keys, wallets and endpoints, and the live package. */
export function ownerStatements(): readonly Statement[] {
  const partners = `generate_series(1, ${PARTNERS}) AS p`;
  return [
    {
      table: 'partners',
      sql: `INSERT INTO partners (id, name, status, created_at)
            SELECT growth.owned('ptn', p, 0), 'Growth ' || p, CASE WHEN p % 50 = 49 THEN 'suspended' ELSE 'active' END,
              now() - interval '200 days' + p * interval '1 s' FROM ${partners}`,
    },
    {
      table: 'wallets',
      sql: `INSERT INTO wallets (id, partner_id, currency, posted) OVERRIDING SYSTEM VALUE
            SELECT p, growth.owned('ptn', p, 0), 'USD', 1000000000000 FROM ${partners}`,
    },
    ...MODES.flatMap((mode): Statement[] => [
      {
        table: 'api_keys',
        sql: `INSERT INTO api_keys (id, partner_id, mode, hash, last4)
              SELECT growth.owned('key', p, ${keySlot(mode)}), growth.owned('ptn', p, 0), '${mode}',
                sha256(convert_to('${mode}' || p, 'UTF8')), lpad(p::text, 4, '0') FROM ${partners}`,
      },
      {
        table: 'webhook_endpoints',
        // The address is never called: no worker runs. The last of each is disabled.
        sql: `INSERT INTO webhook_endpoints (id, partner_id, mode, url, secret, enabled, created_at)
              SELECT growth.owned('whe', p, ${endpointSlot(mode, 0)} + j), growth.owned('ptn', p, 0), '${mode}',
                'https://receiver.invalid/' || p, 'sealed', j < ${ENDPOINTS - 1}, now() - interval '150 days'
              FROM ${partners}, generate_series(0, ${ENDPOINTS - 1}) AS j`,
      },
    ]),
    {
      table: 'packages',
      sql: `INSERT INTO packages SELECT (jsonb_populate_record(p, '{"mode": "live", "cost_micros": 600000}')).*
            FROM packages p WHERE id = 'pkg_fr_1gb_7d' AND mode = 'sandbox'`,
    },
    {
      table: 'package_sources',
      sql: `INSERT INTO package_sources (package_id, provider, upstream_id, kind, cost_micros, cost_currency)
            VALUES ('pkg_fr_1gb_7d', 'esim_access', 'PFR1D7', 'base', 600000, 'USD')`,
    },
  ];
}

/** What is open, what is past its retention, and the smaller tables. */
export function restStatements({ orders }: GrowthScale): readonly Statement[] {
  return [...open(), ...smallTables(Math.max(OLD_ROWS, Math.floor(orders / 200)))];
}

function open(): Statement[] {
  const someMs = `(extract(epoch FROM now()) * 1000)::bigint - i * 10`;
  return [
    {
      table: 'orders',
      sql: `INSERT INTO orders (id, partner_id, mode, status, package_id, quantity, unit_price_amount, currency, provider,
              provider_reference, accepted_request_id, upstream_package_id, data_bytes, validity_days, activation_policy, next_attempt_at)
            SELECT growth.id('ord', ${someMs}, -i), growth.owned('ptn', 1 + (i % 20)::int, 0), 'sandbox', 'processing', 'pkg_fr_1gb_7d', 1, 110,
              'USD', 'sandbox', growth.id('prv', ${someMs}, -i), growth.id('req', ${someMs}, -i), 'PFR1D7', 1000000000, 7,
              'on_first_use', now() + (i % 3 - 1) * interval '1 hour'
            FROM generate_series(1, ${OPEN_ORDERS}::bigint) AS i`,
    },
    {
      table: 'webhook_deliveries',
      // A tenth at the disabled endpoints, held for longer than they are kept.
      sql: `INSERT INTO webhook_deliveries (id, endpoint_id, partner_id, mode, event_id, event_type, kind, status, next_attempt_at, created_at)
            SELECT growth.id('dlv', ${someMs}, -i), growth.owned('whe', 1 + (i % 40)::int, 10 + CASE WHEN i % 10 = 0 THEN ${ENDPOINTS - 1} ELSE (i % 3)::int END),
              growth.owned('ptn', 1 + (i % 40)::int, 0), 'live', e.id, 'order.issued', 'event', 'pending',
              now() - i * interval '10 ms', CASE WHEN i % 10 = 0 THEN now() - interval '95 days' ELSE now() - i * interval '10 ms' END
            FROM generate_series(1, ${OPEN_DELIVERIES}::bigint) AS i,
              (SELECT id FROM events_live WHERE id < growth.id('evt', (extract(epoch FROM now()) * 1000)::bigint, 0) ORDER BY id DESC LIMIT 1) AS e`,
    },
  ];
}

function smallTables(many: number): Statement[] {
  const spread = `now() - i * interval '95 days' / ${many}`;
  const rows = `generate_series(1, ${many}::bigint) AS i`;
  const old = `generate_series(1, ${OLD_ROWS}::bigint) AS i`;
  const id = (prefix: string, days: number): string =>
    `growth.id('${prefix}', (extract(epoch FROM now() - interval '${days} days') * 1000)::bigint, i)`;
  return [
    {
      table: 'audit_log',
      sql: `INSERT INTO audit_log (id, actor, action, partner_id, subject_id, created_at)
            SELECT ${id('aud', 1)}, 'portal', CASE WHEN i % 9 = 0 THEN 'partner.suspended' ELSE 'key.created' END,
              growth.owned('ptn', 1 + (i % ${PARTNERS})::int, 0), growth.owned('key', 1 + (i % ${PARTNERS})::int, 1), ${spread} FROM ${rows}`,
    },
    {
      table: 'alerts',
      sql: `INSERT INTO alerts (id, type, partner_id, subject_id, created_at)
            SELECT ${id('alr', 1)}, CASE WHEN i % 9 = 0 THEN 'balance.low' ELSE 'endpoint.blocked' END,
              growth.owned('ptn', 1 + (i % ${PARTNERS})::int, 0), growth.owned('whe', 1 + (i % ${PARTNERS})::int, 10), ${spread} FROM ${rows}`,
    },
    {
      table: 'package_price_history',
      sql: `INSERT INTO package_price_history (package_id, cost_micros, price_amount, currency, available, changed_at)
            SELECT 'pkg_fr_1gb_7d', 600000, 110, 'USD', true, ${spread} - (i % 2) * interval '401 days' FROM ${rows}`,
    },
    {
      table: 'catalog_syncs',
      sql: `INSERT INTO catalog_syncs (id, status, requested_at, started_at, ended_at)
            SELECT ${id('syn', 1)}, 'completed', now() - i * interval '1 hour', now() - i * interval '1 hour', now() - i * interval '1 hour'
            FROM ${old}`,
    },
    {
      table: 'webhook_backlog_jobs',
      sql: `INSERT INTO webhook_backlog_jobs (id, kind, step, endpoint_id, partner_id, status, since, until, statuses, created_at, ended_at)
            SELECT ${id('rpl', 40)}, 'replay', 'await', growth.owned('whe', 1, 10), growth.owned('ptn', 1, 0), 'completed', now() - interval '41 days',
              now() - interval '40 days', '{failed}', now() - interval '40 days', now() - interval '40 days' FROM ${old}`,
    },
    {
      table: 'webhook_endpoints',
      sql: `INSERT INTO webhook_endpoints (id, partner_id, mode, url, secret, enabled, created_at, deleted_at)
            SELECT ${id('whe', 40)}, growth.owned('ptn', 1 + (i % ${PARTNERS})::int, 0), 'live', 'https://receiver.invalid/', 'sealed', false,
              now() - interval '60 days', now() - interval '40 days' FROM ${old}`,
    },
    {
      table: 'idempotency_keys',
      sql: `INSERT INTO idempotency_keys (scope, key, fingerprint, request_id, status, body, expires_at)
            SELECT 'growth', 'k' || i, '\\x00', ${id('req', 1)}, 202, repeat('x', 400),
              CASE WHEN i <= ${OLD_ROWS} THEN now() - interval '1 hour' ELSE now() + interval '30 days' END FROM ${rows}`,
    },
  ];
}
