import type { DatabaseServer } from '../service/database-server.js';
import { memoryOf, memoryOfTree } from '../service/process-facts.js';
import type { ServiceProcess } from '../service/service-process.js';

/** What is looked at each minute; by the name of its line in the table. */
export type Sample = Readonly<Record<string, number>>;

export type SoakProcesses = Readonly<Record<'api' | 'admin' | 'worker', ServiceProcess>>;

/** Tables that would grow without retention, and those that rows go through. */
const TABLES = [
  'orders',
  'esims',
  'topups',
  'events',
  'webhook_deliveries',
  'webhook_attempts',
  'api_calls',
  'idempotency_keys',
  'sandbox_upstream_orders',
  'rate_buckets',
];
const MB = 1_048_576;

/** Memory, sizes and queues at one moment. What does not answer is left out. */
export async function takeSample(
  server: DatabaseServer,
  database: string,
  processes: SoakProcesses,
): Promise<Sample> {
  const sample: Record<string, number> = {};
  for (const [name, process] of Object.entries(processes)) {
    const memory = memoryOf(process.pid);
    if (memory) sample[`${name}: RSS (MB)`] = memory.rssMb;
    Object.assign(sample, await readMetrics(name, process));
  }
  const postgres = memoryOfTree(server.pid);
  if (postgres) sample['PostgreSQL: PSS (MB)'] = postgres.pssMb;
  return { ...sample, ...(await readTables(server, database)), ...(await readQueues(server, database)) };
}

async function readMetrics(name: string, { opsUrl }: ServiceProcess): Promise<Sample> {
  const text = await (await fetch(`${opsUrl}/metrics`)).text();
  const gauge = (metric: string): number =>
    Number(new RegExp(`^${metric}(?:\\{[^}]*\\})? (\\S+)`, 'm').exec(text)?.[1] ?? NaN);
  return {
    [`${name}: heap used (MB)`]: gauge('nodejs_heap_size_used_bytes') / MB,
    [`${name}: event loop lag p99 (ms)`]: gauge('nodejs_eventloop_lag_p99_seconds') * 1_000,
  };
}

async function readTables(server: DatabaseServer, database: string): Promise<Sample> {
  const rows = await server.query<{
    name: string;
    table_mb: number;
    index_mb: number;
    dead: string;
    live: string;
  }>(
    `SELECT t.name, (sum(pg_table_size(p.relid)) / ${MB})::float8 AS table_mb, (sum(pg_indexes_size(p.relid)) / ${MB})::float8 AS index_mb,
            coalesce(sum(s.n_dead_tup), 0) AS dead, coalesce(sum(s.n_live_tup), 0) AS live
     FROM unnest($1::text[]) AS t (name)
     CROSS JOIN LATERAL (SELECT relid FROM pg_partition_tree(t.name::regclass) WHERE isleaf
                         UNION SELECT t.name::regclass) AS p
     LEFT JOIN pg_stat_user_tables s ON s.relid = p.relid GROUP BY 1`,
    [TABLES],
    database,
  );
  return Object.fromEntries(
    rows.flatMap((one): [string, number][] => [
      [`${one.name}: table (MB)`, one.table_mb],
      [`${one.name}: indexes (MB)`, one.index_mb],
      [`${one.name}: rows`, Number(one.live)],
      [`${one.name}: dead rows`, Number(one.dead)],
    ]),
  );
}

async function readQueues(server: DatabaseServer, database: string): Promise<Sample> {
  const [row] = await server.query<{
    orders: number;
    deliveries: number;
    queue_mb: number;
    database_mb: number;
  }>(
    `SELECT (SELECT count(*)::int FROM orders WHERE next_attempt_at IS NOT NULL) AS orders,
            (SELECT count(*)::int FROM webhook_deliveries WHERE status = 'pending') AS deliveries,
            (SELECT (coalesce(sum(pg_total_relation_size(oid)), 0) / ${MB})::float8 FROM pg_class
             WHERE relnamespace = 'bullmq'::regnamespace AND relkind = 'r') AS queue_mb,
            (pg_database_size(current_database()) / ${MB})::float8 AS database_mb`,
    [],
    database,
  );
  return {
    'queue: open orders': row!.orders,
    'queue: open deliveries': row!.deliveries,
    'queue: its tables (MB)': row!.queue_mb,
    'database (MB)': row!.database_mb,
  };
}
