/**
 * `npm run bench -- growth`: every operation of the service (calls, lists with each filter, feed polls, claims, sweeps,
 * purge steps, partitions, a backfill) and `/metrics` on a large database (D44).
 * Baseline: the same operation on a database of 10 thousand orders on the same server, measured alternately. The large
 * database's p95 may be 1.2 times as high, or half a millisecond higher.
 * Read the column "ratio p95", which compares the second read of each row. The first read shows the disk's cost for
 * uncached pages.
 * `--data DIR` keeps the databases, so a second run only measures.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { fillDatabase, type GrowthScale } from './growth-fill.js';
import { httpOperations } from './growth-http.js';
import { BIG_PARTNER, ownedId } from './growth-tables.js';
import { WorkerParts, workerOperations } from './growth-worker.js';
import type { BenchOptions } from './main.js';
import type { Cleanups } from './shared/child.js';
import { DatabaseServer } from './shared/database-server.js';
import { createKeys } from './shared/partners.js';
import { ascending, quantile, say, type Section } from './shared/report.js';
import {
  deafProvider,
  PRODUCTION,
  secretBox,
  SECRETS_KEYS,
  type ServiceProcess,
  startRoles,
} from './shared/service-process.js';

const SMALL: GrowthScale = { database: 'bench_small', orders: 10_000, deliveries: 50_000 };
/** Filling writes only the WAL that crash recovery needs. Autovacuum is off so that it cannot disturb a measurement. */
const SERVER_SETTINGS = {
  autovacuum: 'off',
  wal_level: 'minimal',
  max_wal_senders: 0,
  max_wal_size: '1GB',
  checkpoint_timeout: '15min',
  shared_buffers: '1GB',
};
const MAX_RATIO = 1.2;
/** A single sample can move a p95 by this much. */
const NOISE_MS = 0.5;
/** Maximum time per operation. Slow operations get fewer samples. */
const BUDGET_MS = 30_000;
const MIN_SAMPLES = 20;
/** Number of rows per table that are read by id, drawn at random from all days. */
const PICKS = 200;
/** Longer than the service caches its metrics, so that each scrape reads the database. */
const SCRAPE_EVERY_MS = 10_500;
const SCRAPES = 12;

/** An operation that the service performs routinely, bound to one database. */
export interface Operation {
  readonly name: string;
  /** Sample count, if lower than the default. */
  readonly samples?: number;
  /** @param nth index of the sample, which selects the id */
  run(nth: number): Promise<unknown>;
}

/** One filled database with an API process, an admin process, and the worker's parts without its loops. */
export interface GrowthBed {
  readonly partnerId: string;
  readonly api: ServiceProcess;
  readonly admin: ServiceProcess;
  readonly worker: WorkerParts;
  readonly keys: Readonly<Record<'live' | 'sandbox', string>>;
  readonly picks: Awaited<ReturnType<typeof pickRows>>;
  query<Row extends object>(sql: string, values?: unknown[]): Promise<Row[]>;
}

/** Milliseconds, ascending. */
interface Times {
  /** The first read of a row may have to fetch its pages from disk. */
  readonly first: readonly number[];
  /** The immediate repetition shows the cost of the table's size alone. */
  readonly again: readonly number[];
}

interface Comparison {
  readonly name: string;
  readonly small: Times;
  readonly large: Times;
}

export async function benchGrowth({ growth }: BenchOptions, cleanups: Cleanups): Promise<readonly Section[]> {
  const { orders, deliveries, dataDir, minFreeGb, samples } = growth;
  const server = cleanups.stopping(await DatabaseServer.start(SERVER_SETTINGS, dataDir));
  const large: GrowthScale = { database: 'bench_large', orders, deliveries };
  const notes = [
    ...(await fillDatabase(server, SMALL, minFreeGb)),
    ...(await fillDatabase(server, large, minFreeGb)),
  ];
  const beds = [await openBed(server, SMALL, cleanups), await openBed(server, large, cleanups)] as const;
  const sizes = `10 thousand orders against ${orders.toLocaleString('en')} orders and ${deliveries.toLocaleString('en')} deliveries`;
  const scrapes = await scrapeMetrics(...beds);
  const [ofSmall, ofLarge] = [await operationsOf(beds[0]), await operationsOf(beds[1])];
  const comparisons: Comparison[] = [];
  const failures: string[] = [];
  const compareNth = async (nth: number, suffix = ''): Promise<void> => {
    const name = ofSmall[nth]!.name + suffix;
    try {
      const comparison = { ...(await compare(ofSmall[nth]!, ofLarge[nth]!, samples)), name };
      comparisons.push(comparison);
      say(
        `${nth + 1}/${ofSmall.length} ${name}${isSlower(comparison) ? ': slower in the large database' : ''}`,
      );
    } catch (error) {
      failures.push(`NOT MEASURED: ${name}: ${(error as Error).message.slice(0, 300)}`);
      say(failures.at(-1)!);
    }
  };
  for (let nth = 0; nth < ofSmall.length; nth++) await compareNth(nth);
  // Building an index in a migration must not block a POST, however large the table is.
  const building = new AbortController();
  const builds = beds.map((bed) => buildIndexes(bed, building.signal));
  await compareNth(0, ' while CREATE INDEX CONCURRENTLY runs').finally(() => building.abort());
  await Promise.all(builds);
  const slower = comparisons.filter(isSlower).length;
  return [
    { title: `/metrics: ${sizes}`, rows: [], ...scrapes },
    {
      title: `Growth: ${sizes}`,
      rows: [],
      table: comparisonTable(comparisons),
      notes: [
        `${comparisons.length - slower} operations are within ${MAX_RATIO} times (or half a millisecond), ${slower} are slower, ${failures.length} were not measured.`,
        ...failures,
        'One caller alternates between both databases on one server. Both cover the same days; the caller owns a third of the rows.',
        'The ratio compares the second read of each sample. The first read may have to fetch its pages from disk.',
        'Claims and purge steps are rolled back after each sample. Sweeps find nothing to do after their warm-up.',
        'Not measured: reconciliation and the count of finished deliveries, which read everything by design.',
        ...notes,
      ],
    },
  ];
}

async function operationsOf(bed: GrowthBed): Promise<readonly Operation[]> {
  return [...(await httpOperations(bed)), ...workerOperations(bed)];
}

/** Alternates between the databases and runs each sample twice, because the large database does not fit in memory. */
async function compare(
  small: Operation,
  large: Operation,
  samples: number,
): Promise<Omit<Comparison, 'name'>> {
  const sides = [small, large].map((operation) => ({
    operation,
    first: [] as number[],
    again: [] as number[],
  }));
  const count = Math.min(samples, small.samples ?? samples);
  const warmUp = Math.ceil(Math.min(count, 30) / 2);
  const deadlineMs = performance.now() + BUDGET_MS;
  for (let nth = 0; nth < count + warmUp; nth++) {
    for (const look of ['first', 'again'] as const)
      for (const side of nth % 2 === 0 ? sides : [...sides].reverse()) {
        const startedAtMs = performance.now();
        await side.operation.run(nth);
        if (nth >= warmUp) side[look].push(performance.now() - startedAtMs);
      }
    if (performance.now() > deadlineMs && sides[1]!.again.length >= MIN_SAMPLES) break;
  }
  const [ofSmall, ofLarge] = sides.map(({ first, again }) => ({
    first: ascending(first),
    again: ascending(again),
  }));
  return { small: ofSmall!, large: ofLarge! };
}

function isSlower({ small, large }: Comparison): boolean {
  const [before, after] = [quantile(small.again, 0.95), quantile(large.again, 0.95)];
  return after / before > MAX_RATIO && after - before > NOISE_MS;
}

function comparisonTable(comparisons: readonly Comparison[]): string[][] {
  const ms = (times: readonly number[], share: number): string => quantile(times, share).toFixed(2);
  return [
    [
      ...['operation (ms)', 'small p50', 'p95', 'large p50', 'p95', 'samples', 'ratio p95', ''],
      ...['first read: small p95', 'large p50', 'large p95'],
    ],
    ...comparisons.map((one) => [
      one.name,
      ...[one.small, one.large].flatMap(({ again }) => [ms(again, 0.5), ms(again, 0.95)]),
      String(one.large.again.length),
      (quantile(one.large.again, 0.95) / quantile(one.small.again, 0.95)).toFixed(2),
      isSlower(one) ? `> ${MAX_RATIO}` : '',
      ...[ms(one.small.first, 0.95), ms(one.large.first, 0.5), ms(one.large.first, 0.95)],
    ]),
  ];
}

/** Repeats the build, because the small table's index is finished almost at once. */
async function buildIndexes(bed: GrowthBed, stop: AbortSignal): Promise<void> {
  while (!stop.aborted) {
    await bed.query('CREATE INDEX CONCURRENTLY growth_orders_index ON orders (package_id, created_at)');
    await bed.query('DROP INDEX CONCURRENTLY growth_orders_index');
    await sleep(10);
  }
}

/** Measures `/metrics` of each role and checks that the large database exposes every metric of the small one. */
async function scrapeMetrics(small: GrowthBed, large: GrowthBed) {
  const over = async (opsUrl: string): Promise<string> => {
    const response = await fetch(`${opsUrl}/metrics`);
    if (!response.ok) throw new Error(`${opsUrl}/metrics: ${response.status}`);
    return response.text();
  };
  const targets = [small, large].flatMap(({ api, admin, worker }, side) => {
    const reads: Readonly<Record<string, () => Promise<string>>> = {
      api: () => over(api.opsUrl),
      admin: () => over(admin.opsUrl),
      worker: () => worker.resources.metrics.metrics(),
    };
    return Object.entries(reads).map(([role, read]) => ({
      role,
      size: side === 0 ? 'small' : 'large',
      read,
      times: [] as number[],
      names: new Set<string>(),
    }));
  });
  for (let nth = 0; nth < SCRAPES; nth++) {
    if (nth > 0) await sleep(SCRAPE_EVERY_MS);
    for (const target of targets) {
      const startedAtMs = performance.now();
      const text = await target.read();
      target.times.push(performance.now() - startedAtMs);
      target.names = new Set(Array.from(text.matchAll(/^([a-z_]+)[{ ]/gm), ([, name]) => name!));
    }
    say(`scrape ${nth + 1}: ${targets.map(({ times }) => times.at(-1)!.toFixed(1)).join(' ')} ms`);
  }
  const missing = targets
    .slice(0, 3)
    .flatMap(({ role, names }, nth) =>
      [...names].filter((name) => !targets[nth + 3]!.names.has(name)).map((name) => `${role} ${name}`),
    );
  return {
    table: [
      ['/metrics (ms)', 'first', 'p50', 'slowest', 'scrapes', 'metrics'],
      ...targets.map(({ role, size, times: [first, ...later], names }) => [
        `${role}, ${size}`,
        ...[first!, quantile(ascending(later), 0.5), Math.max(...later)].map((ms) => ms.toFixed(1)),
        String(later.length + 1),
        String(names.size),
      ]),
    ],
    notes: [
      `Scrapes are ${SCRAPE_EVERY_MS / 1_000} s apart, so each reads the database. The worker's bypass HTTP.`,
      missing.length === 0
        ? 'Complete: the large database exposes every metric of the small one.'
        : `INCOMPLETE: the large database lacks ${missing.join(', ')}`,
    ],
  };
}

async function openBed(
  server: DatabaseServer,
  { database }: GrowthScale,
  cleanups: Cleanups,
): Promise<GrowthBed> {
  const databaseUrl = server.url(database);
  const partnerId = ownedId('ptn', BIG_PARTNER, 0);
  const query: GrowthBed['query'] = (sql, values = []) => server.query(sql, values, database);
  const [live] = await createKeys(server, database, [partnerId], 'live');
  const [sandbox] = await createKeys(server, database, [partnerId], 'sandbox');
  const picks = await pickRows(query, partnerId);
  // Reads by id open these secrets, so only these need valid ones. The filler values have about the same length.
  const install = JSON.stringify({
    smdpAddress: 'smdp.example',
    matchingId: 'ABCDEF',
    confirmationCode: null,
  });
  const ids = picks.esims.map(({ id }) => id);
  await query(
    `UPDATE esims e SET install_secrets = s.sealed FROM unnest($1::text[], $2::text[]) AS s (id, sealed) WHERE e.id = s.id`,
    [ids, ids.map((id) => secretBox().seal(install, id))],
  );
  const env = { ...PRODUCTION, ...deafProvider(), LOG_LEVEL: 'warn', LISTS_PER_PARTNER: '100' };
  const { api, admin } = await startRoles(['api', 'admin'], { databaseUrl, env }, cleanups);
  const ADMIN_TOKENS = `bench:${admin.adminToken}`;
  const worker = cleanups.stopping(
    await WorkerParts.open({ ...env, ADMIN_TOKENS, SECRETS_KEYS, DATABASE_URL: databaseUrl }),
  );
  return { partnerId, api, admin, worker, keys: { live: live!.key, sandbox: sandbox!.key }, picks, query };
}

/**
 * @returns ids and filter values of the measured partner
 * @throws Error when the partner has no row in a table
 */
async function pickRows(query: GrowthBed['query'], partnerId: string) {
  const some = async <Row extends object>(columns: string, table: string, more = ''): Promise<Row[]> => {
    const [size] = await query<{ rows: number }>(
      `SELECT sum(reltuples)::float8 AS rows FROM pg_class c JOIN pg_partition_tree($1::regclass) t ON t.relid = c.oid`,
      [table],
    );
    const percent = Math.min(100, (PICKS * 3_000) / Math.max(1, size!.rows));
    const rows = await query<Row>(
      `SELECT ${columns} FROM ${table} TABLESAMPLE SYSTEM (${percent})
       WHERE partner_id = $1 ${more} ORDER BY random() LIMIT ${PICKS}`,
      [partnerId],
    );
    if (rows.length === 0) throw new Error(`the measured partner has no ${table}`);
    return rows;
  };
  const ids = async (table: string, more = '', column = 'id'): Promise<string[]> =>
    (await some<{ id: string }>(`${column} AS id`, table, more)).map(({ id }) => id);
  const live = `AND mode = 'live'`;
  return {
    orders: await ids('orders', live),
    esims: await some<{ id: string; iccid: string; order_id: string }>('id, iccid, order_id', 'esims', live),
    topups: await some<{ id: string; esim_id: string }>('id, esim_id', 'topups', live),
    events: await ids('events', live),
    deliveries: await some<{ id: string; event_id: string }>(
      'id, event_id',
      'webhook_deliveries',
      `${live} AND status = 'delivered'`,
    ),
    references: await ids('orders', `${live} AND reference IS NOT NULL`, 'reference'),
    calls: await ids('api_calls', '', 'request_id'),
  };
}
