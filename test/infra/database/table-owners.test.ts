import { readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { describe, expect, it } from 'vitest';
import { PROJECT_ROOT as ROOT } from '../../harness/child-process.js';

/** The folder of `src` that owns a table. Only its SQL may name the table. */
const OWNERS: Readonly<Record<string, readonly string[]>> = {
  alerts: ['alerts'],
  'api-keys': ['api_keys'],
  audit: ['audit_log'],
  auth: ['key_spending', 'rate_buckets'],
  'call-log': ['api_calls'],
  catalog: ['packages', 'catalog_changes', 'catalog_versions', 'price_lists'],
  esims: ['esims', 'esim_auto_topups'],
  events: ['events', 'event_feed_days'],
  infra: ['idempotency_keys'],
  orders: ['orders'],
  overview: ['partner_activity', 'partner_activity_progress'],
  partners: ['partners', 'sandbox_quotas'],
  'portal-sessions': ['portal_sessions'],
  providers: [
    'provider_health',
    'provider_placements',
    'sandbox_upstream_orders',
    'sandbox_upstream_topups',
    'upstream_pace',
  ],
  reconciliation: ['reconciliation_runs', 'reconciliation_cursors', 'reconciliation_differences'],
  'install-links': ['install_links'],
  refunds: ['refund_requests'],
  restore: ['restore_epochs', 'unclaimed_purchases', 'placement_lookups'],
  topups: ['topups'],
  wallet: ['wallets', 'wallet_holds', 'wallet_low_signals', 'ledger_transactions', 'ledger_entries'],
  webhooks: [
    'webhook_endpoints',
    'webhook_deliveries',
    'webhook_attempts',
    'webhook_backlog_jobs',
    'webhook_endpoint_leases',
    'webhook_endpoint_stats',
  ],
  'catalog-sync': ['catalog_syncs', 'package_price_history', 'package_sources', 'topup_fits'],
};

interface Exception {
  readonly feature: string;
  readonly access: TableUse['access'];
  readonly tables: readonly string[];
  readonly why: string;
}

const BOOKS = ['wallets', 'wallet_holds', 'ledger_transactions', 'ledger_entries'];

/** Foreign tables that a feature's SQL may name. An unused exception fails the test. */
const EXCEPTIONS: readonly Exception[] = [
  {
    feature: 'auth',
    access: 'reads',
    tables: ['api_keys', 'partners', 'portal_sessions'],
    why: 'key or session, partner and rate limit are read at every call (D21, D50)',
  },
  {
    feature: 'portal-sessions',
    access: 'reads',
    tables: ['partners'],
    why: 'a code is spent only while its partner is active, in one statement (D50)',
  },
  {
    feature: 'api-keys',
    access: 'reads',
    tables: ['api_calls'],
    why: 'a page of keys says what used each in the last day, in one statement',
  },
  {
    feature: 'reconciliation',
    access: 'reads',
    tables: [...BOOKS, 'orders', 'topups', 'esims', 'events', 'refund_requests'],
    why: 'the checks of the books compare what every feature wrote',
  },
  {
    feature: 'providers',
    access: 'reads',
    tables: ['orders', 'topups', 'esims', 'packages'],
    why: 'an adapter tells a top-up that it bought from others by all that was bought for the eSIM',
  },
  {
    feature: 'events',
    access: 'reads',
    tables: ['esims', 'topups'],
    why: 'the events about an eSIM or a top-up are found by the order that it came from (D39)',
  },
  {
    feature: 'orders',
    access: 'reads',
    tables: ['esims', 'topups'],
    why: 'an order whose eSIM was topped up, or is about to be, is not canceled (D22)',
  },
  {
    feature: 'orders',
    access: 'reads',
    tables: ['refund_requests'],
    why: 'a cancellation refunds what approved refund requests left of the price',
  },
  {
    feature: 'purchases',
    access: 'reads',
    tables: ['esims'],
    why: 'whether a top-up may have been placed before a restore is told by the age of its eSIM (D54)',
  },
  {
    feature: 'topups',
    access: 'reads',
    tables: ['esims', 'orders'],
    why: 'a top-up locks the order of its eSIM, so that no cancellation begins beside it (D40)',
  },
  {
    feature: 'support',
    access: 'reads',
    tables: ['provider_placements'],
    why: 'support lists what was bought or taken back twice by the count of its placements',
  },
  {
    feature: 'esims',
    access: 'reads',
    tables: ['orders', 'topups', 'refund_requests'],
    why: 'order, top-ups and refunds of an eSIM decide its plans and its actions, read in one statement',
  },
  {
    feature: 'install-links',
    access: 'reads',
    tables: ['esims', 'orders', 'packages', 'partners'],
    why: 'a page shows one moment: link, eSIM, brand and package are read in one statement (D63)',
  },
  {
    feature: 'esims',
    access: 'reads',
    tables: ['restore_epochs'],
    why: 'no automatic top-up is placed during a repair (D54)',
  },
  {
    feature: 'esim-sync',
    access: 'reads',
    tables: ['esims', 'orders'],
    why: 'the poll plan is columns of esims, and leaves out eSIMs of orders that are being canceled',
  },
  {
    feature: 'esim-sync',
    access: 'writes',
    tables: ['esims'],
    why: 'the poll plan is columns of esims: next_poll_at and those that no entity maps',
  },
  {
    feature: 'catalog-sync',
    access: 'reads',
    tables: ['packages'],
    why: 'a synchronization compares thousands of packages in one statement',
  },
  {
    feature: 'catalog-sync',
    access: 'writes',
    tables: ['packages'],
    why: 'a synchronization withdraws what its provider no longer sells, in its own transaction',
  },
  {
    feature: 'catalog',
    access: 'reads',
    tables: ['package_sources', 'topup_fits'],
    why: 'a sale reads price, availability and source of one moment in one statement (D27)',
  },
  {
    feature: 'catalog',
    access: 'writes',
    tables: ['package_sources'],
    why: 'a reader of an old list of top-ups asks for a new one: topups_wanted_at only',
  },
  {
    feature: 'restore',
    access: 'reads',
    tables: ['orders', 'topups'],
    why: 'what a provider sold is known when an order or a top-up has its reference (D54)',
  },
  {
    feature: 'restore',
    access: 'writes',
    tables: ['orders', 'topups', 'esims', 'portal_sessions'],
    why: 'what a restored database says of open work and of sessions is distrusted in one transaction (D54)',
  },
  {
    feature: 'purchases',
    access: 'reads',
    tables: ['unclaimed_purchases', 'placement_lookups', 'restore_epochs'],
    why: 'a row that is accepted says whether its purchase may have been placed already, and nothing is claimed during a repair (D54)',
  },
  {
    feature: 'reconciliation',
    access: 'reads',
    tables: ['unclaimed_purchases'],
    why: 'what was claimed after a restore was bought before its order was accepted (D54)',
  },
  {
    feature: 'embedded',
    access: 'writes',
    tables: ['orders'],
    why: 'the demo has an order that waits for too long, which no API can make',
  },
  {
    feature: 'webhooks',
    access: 'reads',
    tables: ['events'],
    why: 'deliveries send the bytes of the event, which are stored once',
  },
  {
    feature: 'overview',
    access: 'reads',
    tables: ['orders', 'partners', 'topups'],
    why: 'the roll-up counts what all partners bought in one statement, instead of one per order',
  },
];

const WRITES = /\b(?:INSERT INTO|DELETE FROM|LOCK TABLE|TRUNCATE|UPDATE)\s+([a-z_]+)/g;
/** The tables after FROM, JOIN or USING, including lists with aliases. */
const READS =
  /\b(?:FROM|JOIN|USING)\s+([a-z_]+(?:(?:\s+AS)?\s+[a-z]\w*)?(?:\s*,\s*[a-z_]+(?:\s+[a-z]\w*)?)*)/g;
const DELETED = /\bDELETE\s+$/;

const tables = migratedTables();
const uses = findTableUses(tables);

const isOwn = ({ feature, table }: TableUse): boolean => OWNERS[feature]?.includes(table) ?? false;
const keyOf = (use: Pick<TableUse, 'feature' | 'access' | 'table'>): string =>
  `${use.feature} ${use.access} ${use.table}`;

describe('table ownership', () => {
  it('assigns every migrated table to one feature', () => {
    expect(Object.values(OWNERS).flat().sort()).toEqual([...tables].sort());
  });

  it('finds no SQL that uses a table of another feature, except for the listed exceptions', () => {
    const excepted = new Set(
      EXCEPTIONS.flatMap(({ feature, access, tables: named }) =>
        named.map((table) => keyOf({ feature, access, table })),
      ),
    );
    const foreign = uses.filter((use) => !isOwn(use));
    const refused = foreign.filter((use) => !excepted.has(keyOf(use)));
    expect(refused.map((use) => `${use.place}: ${keyOf(use)}`)).toEqual([]);
    const needed = new Set(foreign.map(keyOf));
    expect([...excepted].filter((key) => !needed.has(key))).toEqual([]);
  });

  it('detects the SQL of the source, reads and writes separately', () => {
    expect(uses.length).toBeGreaterThan(150);
    const access = (file: string, table: string) =>
      uses.filter((use) => use.place.startsWith(file) && use.table === table).map((use) => use.access);
    expect(access('src/wallet/wallet-holds.repository.ts', 'wallets')).toContain('writes');
    expect(new Set(access('src/auth/', 'partners'))).toEqual(new Set(['reads']));
  });
});

/** A table named in the SQL of a source file. */
interface TableUse {
  /** E.g. `src/orders/orders.repository.ts:60`. */
  readonly place: string;
  /** The folder below `src`. */
  readonly feature: string;
  readonly table: string;
  readonly access: 'reads' | 'writes';
}

/** All tables that migrations create and do not drop, without partitions. */
function migratedTables(): ReadonlySet<string> {
  const sources = sourcesOf('migrations');
  const dropped = sources.flatMap(({ text }) =>
    [...text.split('async down')[0]!.matchAll(/DROP TABLE ([a-z_, ]+)/g)].flatMap((match) =>
      match[1]!.split(', '),
    ),
  );
  const created = sources.flatMap(({ text }) =>
    [...text.matchAll(/CREATE (?:UNLOGGED )?TABLE (?:IF NOT EXISTS )?([a-z_]+)\b(?! PARTITION OF)/g)].map(
      (match) => match[1]!,
    ),
  );
  return new Set(created.filter((table) => !dropped.includes(table)));
}

/** All uses of a known table in the SQL of `src`, which is uppercase in this repository. */
function findTableUses(tables: ReadonlySet<string>): TableUse[] {
  return sourcesOf('src').flatMap(({ file, text }) => {
    const code = withoutComments(text);
    const use = (table: string, access: TableUse['access'], index: number): TableUse => ({
      place: `${file}:${code.slice(0, index).split('\n').length}`,
      feature: file.split('/')[1]!,
      table,
      access,
    });
    const written = [...code.matchAll(WRITES)].map((match) => use(match[1]!, 'writes', match.index));
    const read = [...code.matchAll(READS)]
      .filter((match) => !DELETED.test(code.slice(0, match.index)))
      .flatMap((match) => namesIn(match[1]!).map((table) => use(table, 'reads', match.index)));
    return [...written, ...read].filter(({ table }) => tables.has(table));
  });
}

/** `orders o, esims` names two tables. */
function namesIn(list: string): string[] {
  return list.split(',').map((item) => item.trim().split(/\s/)[0]!);
}

/** Replaces comments with spaces, so that line numbers stay the same. */
function withoutComments(text: string): string {
  return text.replace(/\/\*[\s\S]*?\*\/|(?<=^|\s)\/\/[^\n]*/g, (comment) => comment.replace(/[^\n]/g, ' '));
}

function sourcesOf(folder: string): { readonly file: string; readonly text: string }[] {
  return readdirSync(path.join(ROOT, folder), { recursive: true, encoding: 'utf8' })
    .filter((name) => name.endsWith('.ts'))
    .map((name) => path.join(folder, name))
    .map((file) => ({ file, text: readFileSync(path.join(ROOT, file), 'utf8') }));
}
