import type { Pool } from 'pg';
import { dayOf, partitionName } from '../../../src/infra/partition-days.js';
import { idFloor } from '../../../src/common/ids.js';
import { type Columns, fillTable } from './filled-tables.js';

export const PARTNER = 'ptn_busy';
export const BUSY_ENDPOINT = 'whe_busy';
/** An eSIM with 20 install links. */
export const BUSY_ESIM = 'esim500';
/** A filter value that only the oldest rows have, which a newest-first scan would find last. */
export const RARE = 'rare';
/** The order of the oldest event. */
export const RARE_ORDER = 'ord_rare';
/** Earlier than all but the oldest rows. */
export const LONG_AGO = new Date(Date.now() - 60 * 86_400_000);

/** Number of days with a partition. */
export const DAYS = 64;
const ROWS = 20_000;
const OF_OTHERS = 4_000;
/** Selects the oldest rows, which alone have the rare values. */
const IS_OLD = `i > ${ROWS - 30}`;
/**
 * Half of the rows are from yesterday and half from the day before, at any hour of the run, because plans depend on it.
 */
const NEWEST = new Date(dayOf(new Date(), -1).getTime() + (ROWS / 2) * 1_000).toISOString();
/** Each row is a second older than the previous one, and the oldest are two months old. */
const CREATED_AT = `'${NEWEST}'::timestamptz - i * interval '1 second' - CASE WHEN ${IS_OLD} THEN interval '61 days' ELSE interval '0' END`;
const rarely = (rare: string, usual: string): string => `CASE WHEN ${IS_OLD} THEN ${rare} ELSE ${usual} END`;
const MODE = rarely(`'live'`, `'sandbox'`);

/** An id with the time of its row, as `newId` would have created it. */
const EVENT_ID = `'evt_' || (
  SELECT string_agg(substr('0123456789ABCDEFGHJKMNPQRSTVWXYZ', (floor(ms / 32 ^ digit)::bigint % 32)::int + 1, 1), ''
                    ORDER BY digit DESC)
  FROM (SELECT floor(extract(epoch FROM ${CREATED_AT}) * 1000) AS ms) AS at, generate_series(0, 9) AS digit
) || lpad(upper($$owner$$), 16, '0')`;

interface Filled {
  readonly table: string;
  readonly columns: Columns;
  /** The owner column of a row and its value for the busy owner. */
  readonly owner?: readonly [column: string, id: string];
}

const OWNED = ['partner_id', PARTNER] as const;
const COMMON = { created_at: CREATED_AT };
const REFERENCE = { reference: rarely(`CASE WHEN i = ${ROWS} THEN '${RARE}' END`, 'NULL') };

const TABLES: readonly Filled[] = [
  { table: 'partners', columns: { ...COMMON, status: rarely(`'suspended'`, `'active'`) } },
  {
    table: 'orders',
    owner: OWNED,
    columns: { ...COMMON, ...REFERENCE, mode: MODE, status: rarely(`'failed'`, `'issued'`) },
  },
  {
    table: 'esims',
    owner: OWNED,
    columns: {
      ...COMMON,
      mode: MODE,
      status: rarely(`'expired'`, `'issued'`),
      order_id: rarely(`CASE WHEN i = ${ROWS} THEN '${RARE}' ELSE 'ord' || i END`, `'ord' || i`),
      iccid: rarely(`CASE WHEN i = ${ROWS} THEN '${RARE}' ELSE '8900' || i END`, `'8900' || i`),
    },
  },
  {
    table: 'install_links',
    owner: OWNED,
    columns: {
      ...COMMON,
      mode: `'live'`,
      esim_id: `'esim' || i / 20`,
      token_hash: `decode(md5($$owner$$ || i), 'hex')`,
      expires_at: 'now()',
    },
  },
  {
    table: 'topups',
    owner: OWNED,
    columns: {
      ...COMMON,
      ...REFERENCE,
      mode: MODE,
      status: rarely(`'failed'`, `'completed'`),
      esim_id: rarely(`'${RARE}'`, `'esim' || i`),
    },
  },
  {
    table: 'events',
    owner: OWNED,
    columns: {
      ...COMMON,
      id: EVENT_ID,
      mode: MODE,
      type: rarely(`'esim.expired'`, `'order.issued'`),
      position: `${ROWS + 1} - i`,
      body: `'{"data":{"order_id":"' || ${rarely(`'${RARE_ORDER}'`, `'ord_' || i`)} || '"}}'`,
    },
  },
  {
    table: 'api_keys',
    owner: OWNED,
    columns: { ...COMMON, mode: MODE, revoked_at: 'now()', hash: `decode(md5($$owner$$ || i), 'hex')` },
  },
  {
    table: 'webhook_endpoints',
    owner: OWNED,
    columns: {
      ...COMMON,
      mode: MODE,
      enabled: rarely('false', 'true'),
      // Half were blocked at some time, and a few are blocked now.
      blocked_until: `CASE WHEN i % 1000 = 0 THEN now() + interval '1 hour' WHEN i % 2 = 0 THEN now() - interval '1 hour' END`,
      deleted_at: `CASE WHEN i <= ${ROWS / 2} THEN now() END`,
    },
  },
  {
    table: 'webhook_deliveries',
    owner: ['endpoint_id', BUSY_ENDPOINT],
    columns: {
      ...COMMON,
      mode: `'live'`,
      kind: `'event'`,
      status: rarely(
        `CASE i % 3 WHEN 0 THEN 'failed' WHEN 1 THEN 'pending' ELSE 'discarded' END`,
        `'delivered'`,
      ),
      event_type: rarely(`'esim.expired'`, `'order.issued'`),
      event_id: rarely(`CASE WHEN i = ${ROWS} THEN '${RARE}' ELSE 'evt' || i END`, `'evt' || i`),
    },
  },
  { table: 'ledger_transactions', owner: OWNED, columns: { ...COMMON, type: `'hold'` } },
  {
    table: 'audit_log',
    columns: {
      ...COMMON,
      partner_id: rarely(`'${RARE}'`, `'${PARTNER}'`),
      subject_id: rarely(`'${RARE}'`, `'key' || i`),
      actor: rarely(`'${RARE}'`, `'portal'`),
      action: rarely(`'${RARE}'`, `'key.created'`),
    },
  },
  {
    table: 'alerts',
    columns: {
      // Listed oldest first, so the rare rows are the newest.
      created_at: `now() - interval '90 days' + i * interval '1 second'`,
      type: rarely(`'balance.low'`, `'endpoint.blocked'`),
      resolved_at: rarely('now()', 'NULL'),
      partner_id: rarely(`'${RARE}'`, `'${PARTNER}'`),
      subject_id: rarely(`'${RARE}'`, `'whe' || i`),
    },
  },
  {
    table: 'api_calls',
    owner: OWNED,
    columns: {
      ...COMMON,
      mode: MODE,
      key_id: rarely(`'${RARE}'`, `'busy'`),
      method: rarely(`'POST'`, `'GET'`),
      route: rarely(`'${RARE}'`, `'/v1/orders'`),
      status: rarely('500', '200'),
      replay_of: rarely(`CASE WHEN i = ${ROWS} THEN '${RARE}' END`, 'NULL'),
    },
  },
];

/** Tables that grow with use and must never be scanned sequentially for a page. */
export const GROWING: readonly string[] = TABLES.map(({ table }) => table);

/** Fills every listed table with many rows of one partner and fewer of another, and runs ANALYZE. */
export async function fillListedTables(pool: Pool): Promise<void> {
  await makeDays(pool);
  for (const { table, columns, owner } of TABLES) {
    const mine = owner ? { [owner[0]]: `'${owner[1]}'` } : {};
    const theirs = owner ? { [owner[0]]: `'other'` } : {};
    await fillTable(pool, table, ROWS, named(columns, { id: `'a' || i`, ...mine }, table));
    await fillTable(pool, table, OF_OTHERS, named(columns, { id: `'b' || i`, ...theirs }, table));
  }
  // The deliveries' endpoint, which has discarded all deliveries older than two months.
  await fillTable(pool, 'webhook_endpoints', 1, {
    id: `'${BUSY_ENDPOINT}'`,
    partner_id: `'${PARTNER}'`,
    enabled: 'true',
    discard_before: `now() - interval '62 days'`,
  });
  await pool.query(
    `INSERT INTO event_feed_days (partition_name, mode, first_position, last_position)
     SELECT c.relname, e.mode, min(e.position), max(e.position) FROM events e JOIN pg_class c ON c.oid = e.tableoid
     GROUP BY 1, 2`,
  );
  await pool.query('ANALYZE');
}

/** Creates partitions for every day with a row and for the days between. */
async function makeDays(pool: Pool): Promise<void> {
  for (let age = 0; age < DAYS; age++) {
    const day = dayOf(new Date(), -age);
    const next = dayOf(day, 1);
    const times = [day.toISOString(), next.toISOString()];
    const ids = [idFloor('evt', day), idFloor('evt', next)];
    for (const table of ['api_calls', 'webhook_deliveries_sandbox', 'webhook_deliveries_live'])
      await makeDay(pool, partitionName(table, day), table, times);
    for (const table of ['events_sandbox', 'events_live'])
      await makeDay(pool, partitionName(table, day), table, ids);
  }
}

async function makeDay(pool: Pool, name: string, table: string, bounds: readonly string[]): Promise<void> {
  const [from, to] = bounds;
  await pool.query(
    `CREATE TABLE IF NOT EXISTS ${name} PARTITION OF ${table} FOR VALUES FROM ('${from}') TO ('${to}')`,
  );
}

/** Adds a unique id per row. A table with another key defines its own columns. */
function named(columns: Columns, own: Columns & { readonly id: string }, table: string): Columns {
  const { id, ...owner } = own;
  const unique: Columns =
    table === 'api_calls' ? { request_id: id } : { id: columns['id'] ?? id, ...uniqueColumns(table, id) };
  const filled = { ...columns, ...unique, ...owner };
  return Object.fromEntries(
    Object.entries(filled).map(([name, value]) => [name, value.replaceAll('$$owner$$', id)]),
  );
}

function uniqueColumns(table: string, id: string): Columns {
  if (table === 'orders' || table === 'topups') return { provider_reference: id };
  return table === 'esims' ? { provider_esim_id: id } : {};
}
