import { readFile } from 'node:fs/promises';
import type { DatabaseServer } from './shared/database-server.js';
import { memoryOf, memoryOfTree } from './shared/machine.js';
import { format } from './shared/report.js';
import type { ServiceProcess } from './shared/service-process.js';

/** Values by the name of their line in the table. */
export type Sample = Readonly<Record<string, number>>;

/** A sample and its time in minutes since the load began. */
export interface TimedSample {
  readonly minute: number;
  readonly sample: Sample;
}

/** A wait for a lock that lasted longer than the server's `deadlock_timeout`. */
export interface LockWait {
  readonly waitedMs: number;
  /** For example `ShareLock on transaction 812`. */
  readonly lock: string;
  readonly statement: string;
}

/** Makes PostgreSQL log every lock wait longer than 100 ms. */
export const LOCK_WAIT_SETTINGS = { log_lock_waits: 'on', deadlock_timeout: '100ms' } as const;

/** Caches fill during the warm-up. Tables grow until the first retention period has passed. */
export const WARM_UP_MINUTES = 5;
export const FIRST_PERIOD_MINUTES = 20;
const MAX_MEMORY_GROWTH = 1.1;
/** Retention drops whole days, so sizes rise and fall between two purges. */
const MAX_SIZE_GROWTH = 1.15;
/** Growth below this is noise: one more page can be half of a small table. */
const MIN_GROWTH_MB = 8;
const MAX_WAIT_MS = 100;

/** Tables that would grow without retention, and tables that rows pass through. */
const TABLES = [
  ...['orders', 'esims', 'topups', 'events', 'webhook_deliveries', 'webhook_attempts', 'api_calls'],
  ...['idempotency_keys', 'sandbox_upstream_orders', 'rate_buckets'],
];
const MB = 1_048_576;

/** Samples memory, sizes and queues. */
export async function takeSample(
  server: DatabaseServer,
  database: string,
  processes: Readonly<Record<string, ServiceProcess>>,
): Promise<Sample> {
  const sample: Record<string, number> = {};
  for (const [name, { pid, opsUrl }] of Object.entries(processes)) {
    sample[`${name}: RSS (MB)`] = memoryOf(pid)?.rssMb ?? NaN;
    const text = await (await fetch(`${opsUrl}/metrics`)).text();
    const gauge = (metric: string): number =>
      Number(new RegExp(`^${metric}(?:\\{[^}]*\\})? (\\S+)`, 'm').exec(text)?.[1] ?? NaN);
    sample[`${name}: heap used (MB)`] = gauge('nodejs_heap_size_used_bytes') / MB;
    sample[`${name}: event loop lag p99 (ms)`] = gauge('nodejs_eventloop_lag_p99_seconds') * 1_000;
  }
  sample['PostgreSQL: PSS (MB)'] = memoryOfTree(server.pid)?.pssMb ?? NaN;
  const tables = await server.query<{
    name: string;
    table: number;
    index: number;
    dead: string;
    live: string;
  }>(
    `SELECT t.name, (sum(pg_table_size(p.relid)) / ${MB})::float8 AS table, (sum(pg_indexes_size(p.relid)) / ${MB})::float8 AS index,
            coalesce(sum(s.n_dead_tup), 0) AS dead, coalesce(sum(s.n_live_tup), 0) AS live
     FROM unnest($1::text[]) AS t (name)
     CROSS JOIN LATERAL (SELECT relid FROM pg_partition_tree(t.name::regclass) WHERE isleaf
                         UNION SELECT t.name::regclass) AS p
     LEFT JOIN pg_stat_user_tables s ON s.relid = p.relid GROUP BY 1`,
    [TABLES],
    database,
  );
  for (const { name, table, index, dead, live } of tables)
    Object.assign(sample, {
      [`${name}: table (MB)`]: table,
      [`${name}: indexes (MB)`]: index,
      [`${name}: rows`]: Number(live),
      [`${name}: dead rows`]: Number(dead),
    });
  const [queues] = await server.query<Record<string, number>>(
    `SELECT (SELECT count(*)::int FROM orders WHERE next_attempt_at IS NOT NULL) AS "queue: open orders",
            (SELECT count(*)::int FROM webhook_deliveries WHERE status = 'pending') AS "queue: open deliveries",
            (SELECT (coalesce(sum(pg_total_relation_size(oid)), 0) / ${MB})::float8 FROM pg_class
             WHERE relnamespace = 'bullmq'::regnamespace AND relkind = 'r') AS "queue: its tables (MB)",
            (pg_database_size(current_database()) / ${MB})::float8 AS "database (MB)"`,
    [],
    database,
  );
  return { ...sample, ...queues };
}

/**
 * Reads the lock waits in the server's log from a line on.
 * @returns the waits and the number of lines so far
 */
export async function readLockWaits(file: string, fromLine: number): Promise<[readonly LockWait[], number]> {
  const lines = (await readFile(file, 'utf8').catch(() => '')).split('\n').slice(0, -1);
  const waits = lines.slice(fromLine).flatMap((line): LockWait[] => {
    const entry = JSON.parse(line) as { message?: string; statement?: string; application_name?: string };
    // `process 7 acquired ShareLock on transaction 812 after 231.4 ms`. PostgreSQL logs this when the wait ends.
    const acquired = /^process \d+ acquired (.+) after ([\d.]+) ms/.exec(entry.message ?? '');
    if (!acquired) return [];
    const text = (entry.statement ?? '').replace(/\s+/g, ' ').trim().slice(0, 120);
    return [
      { waitedMs: Number(acquired[2]), lock: acquired[1]!, statement: `${entry.application_name}: ${text}` },
    ];
  });
  return [waits, lines.length];
}

export function soakTable(samples: readonly TimedSample[]): string[][] {
  const from = samples.filter(({ minute }) => minute >= WARM_UP_MINUTES);
  const used = from.length > 1 ? from : samples;
  return [
    ['', 'first', 'min', 'max', 'last', 'slope/h'],
    ...Object.keys(used[0]?.sample ?? {}).map((name) => {
      const values = valuesOf(used, name);
      const figures = [values[0]!, Math.min(...values), Math.max(...values), values.at(-1)!];
      return [name, ...[...figures, slopePerHour(used, name)].map(format)];
    }),
  ];
}

/** One line per guarantee. */
export function verdicts(
  samples: readonly TimedSample[],
  waits: readonly LockWait[],
  errors: Readonly<Record<string, number>>,
): string[] {
  const sizes = /: (table|indexes) \(MB\)|^database|its tables/;
  return [
    growthVerdict('flat memory', samples, WARM_UP_MINUTES, / RSS \(MB\)| heap used/, MAX_MEMORY_GROWTH),
    growthVerdict(
      'flat sizes after a retention period',
      samples,
      FIRST_PERIOD_MINUTES,
      sizes,
      MAX_SIZE_GROWTH,
    ),
    waits.length === 0
      ? `KEPT: no lock wait exceeded ${MAX_WAIT_MS} ms`
      : `BROKEN: ${waits.length} lock waits exceeded ${MAX_WAIT_MS} ms`,
    ...describeWaits(waits),
    Object.keys(errors).length === 0
      ? 'KEPT: no call was refused or lost'
      : `BROKEN: failed calls: ${JSON.stringify(errors)}`,
  ];
}

/** Compares the second half's maximum with that of the first. */
function growthVerdict(
  promise: string,
  samples: readonly TimedSample[],
  fromMinute: number,
  which: RegExp,
  maxGrowth: number,
): string {
  const used = samples.filter(({ minute }) => minute >= fromMinute);
  if (used.length < 10) return `TOO SHORT for: ${promise} (${used.length} samples after ${fromMinute} min)`;
  const middle = Math.floor(used.length / 2);
  const grown = Object.keys(used[0]!.sample)
    .filter((name) => which.test(name))
    .flatMap((name) => {
      const before = Math.max(...valuesOf(used.slice(0, middle), name));
      const after = Math.max(...valuesOf(used.slice(middle), name));
      const hasGrown = after > before * maxGrowth && after - before > MIN_GROWTH_MB;
      return hasGrown ? [`${name} ${format(before)} to ${format(after)}`] : [];
    });
  return grown.length === 0 ? `KEPT: ${promise}` : `BROKEN: ${promise}: ${grown.join('; ')}`;
}

/** The ten most frequent waits, by lock and statement. */
function describeWaits(waits: readonly LockWait[]): string[] {
  const byStatement = Map.groupBy(
    waits,
    ({ lock, statement }) => `${lock.replace(/\d+/g, '#')}; ${statement}`,
  );
  return [...byStatement]
    .sort(([, a], [, b]) => b.length - a.length)
    .slice(0, 10)
    .map(([name, of]) => {
      const longestMs = Math.round(Math.max(...of.map(({ waitedMs }) => waitedMs)));
      return `  ${of.length} waits, the longest ${longestMs} ms: ${name}`;
    });
}

function valuesOf(samples: readonly TimedSample[], name: string): number[] {
  return samples.map(({ sample }) => sample[name] ?? NaN).filter((value) => !Number.isNaN(value));
}

/** Slope of a least-squares line through all samples. */
function slopePerHour(samples: readonly TimedSample[], name: string): number {
  const points = samples.filter(({ sample }) => !Number.isNaN(sample[name] ?? NaN));
  const mean = (values: readonly number[]): number =>
    values.reduce((sum, one) => sum + one, 0) / values.length;
  const x = mean(points.map(({ minute }) => minute));
  const y = mean(points.map(({ sample }) => sample[name]!));
  const above = points.reduce((sum, one) => sum + (one.minute - x) * (one.sample[name]! - y), 0);
  const below = points.reduce((sum, one) => sum + (one.minute - x) ** 2, 0);
  return below === 0 ? 0 : (above / below) * 60;
}
