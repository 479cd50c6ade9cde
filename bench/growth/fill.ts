import { Client } from 'pg';
import type { DatabaseServer } from '../service/database-server.js';
import { CREATE_FILL } from './fill-sql.js';
import { type FillStep, fillSteps, runStep } from './fill-steps.js';
import type { GrowthScale } from './scale.js';

/** Measured on a fill of 9.4 million orders and 47 million deliveries, with indexes; what goes with them included. */
const BYTES_PER_ORDER = 3_300;
const BYTES_PER_DELIVERY = 1_000;
/** What the server keeps of its log for the next writes. */
const WAL_BYTES = 1e9;
const TELL_EVERY_MS = 5_000;
const GB = 1e9;

export interface FillReport {
  /** What is there now, which may be less than was asked for. */
  readonly scale: GrowthScale;
  readonly bytes: number;
  /** One line each, for people. */
  readonly notes: readonly string[];
}

/**
 * Fills a database, or goes on where an earlier run was interrupted. When the disk does not hold it all, every day gets its
 * share; when less than `minFreeGb` is left nevertheless, the fill stops.
 * @throws Error when the database was filled for other sizes
 */
export async function fillDatabase(
  server: DatabaseServer,
  wanted: Omit<GrowthScale, 'anchor'>,
  minFreeGb: number,
): Promise<FillReport> {
  await server.createDatabase(wanted.database);
  const client = new Client({ connectionString: server.url(wanted.database) });
  // The server goes when the bench is interrupted; the query that is under way says so.
  client.on('error', () => undefined);
  await client.connect();
  try {
    await client.query(
      `SET session_replication_role = 'replica'; SET synchronous_commit = 'off'; SET maintenance_work_mem = '512MB'`,
    );
    await client.query(CREATE_FILL);
    const { scale, share } = await scaleOf(client, server, wanted, minFreeGb);
    return await new Fill(client, server, scale, minFreeGb * GB).run(share);
  } finally {
    await client.end().catch(() => undefined);
  }
}

/** What was begun is gone on with. */
async function scaleOf(
  client: Client,
  server: DatabaseServer,
  wanted: Omit<GrowthScale, 'anchor'>,
  minFreeGb: number,
): Promise<{ scale: GrowthScale; share: number }> {
  const needed = wanted.orders * BYTES_PER_ORDER + wanted.deliveries * BYTES_PER_DELIVERY;
  const share = Math.min(1, Math.max(0, server.freeBytes() - WAL_BYTES - minFreeGb * GB) / needed);
  await client.query(
    'INSERT INTO growth.scale SELECT $1, $2, now(), $3 WHERE NOT EXISTS (SELECT 1 FROM growth.scale)',
    [wanted.orders, wanted.deliveries, share],
  );
  const { rows } = await client.query<{ orders: string; deliveries: string; anchor: Date; share: number }>(
    'SELECT * FROM growth.scale',
  );
  const kept = rows[0]!;
  if (Number(kept.orders) !== wanted.orders || Number(kept.deliveries) !== wanted.deliveries)
    throw new Error(
      `${wanted.database} was filled for ${kept.orders} orders and ${kept.deliveries} deliveries; name these, or another folder`,
    );
  return {
    scale: {
      database: wanted.database,
      orders: Math.floor(wanted.orders * kept.share),
      deliveries: Math.floor(wanted.deliveries * kept.share),
      anchor: kept.anchor,
    },
    share: kept.share,
  };
}

class Fill {
  private readonly startedAtMs = performance.now();
  private toldAtMs = performance.now();
  private rows = 0;
  private stepsDone = 0;

  constructor(
    private readonly client: Client,
    private readonly server: DatabaseServer,
    private readonly scale: GrowthScale,
    private readonly minFreeBytes: number,
  ) {}

  async run(share: number): Promise<FillReport> {
    const steps = fillSteps(this.scale);
    const done = new Set(
      (await this.client.query<{ name: string }>('SELECT name FROM growth.steps')).rows.map(
        ({ name }) => name,
      ),
    );
    const left = steps.filter(({ name }) => !done.has(name));
    const notes: string[] = [];
    if (share < 1)
      notes.push(`${this.scale.database}: the disk holds ${(share * 100).toFixed(0)}% of what was asked for`);
    const stoppedAt = await this.runSteps(left);
    if (stoppedAt)
      notes.push(
        `${this.scale.database}: filling stopped before "${stoppedAt.name}", ${steps.length - left.length + this.stepsDone} of ` +
          `${steps.length} steps done: only ${gigabytes(this.server.freeBytes())} are free`,
      );
    await this.settle(!done.has('settled') || left.length > 0);
    const bytes = await this.bytes();
    return { scale: this.scale, bytes, notes: [...notes, ...(await this.describe(bytes))] };
  }

  /** Answers the step that the disk was too small for. */
  private async runSteps(left: readonly FillStep[]): Promise<FillStep | null> {
    for (const step of left) {
      if (this.server.freeBytes() < this.minFreeBytes) return step;
      this.rows += await runStep(this.client, step);
      this.stepsDone++;
      await this.tell(this.stepsDone / left.length);
    }
    return null;
  }

  private async tell(share: number): Promise<void> {
    const nowMs = performance.now();
    if (nowMs - this.toldAtMs < TELL_EVERY_MS && share < 1) return;
    this.toldAtMs = nowMs;
    const seconds = (nowMs - this.startedAtMs) / 1_000;
    process.stderr.write(
      `${this.scale.database}: ${Math.round(share * 100)}% of the steps, ${Math.round(this.rows / seconds).toLocaleString('en')} rows/s, ` +
        `${gigabytes(await this.bytes())} used, ${gigabytes(this.server.freeBytes())} free, about ${Math.ceil((seconds / share - seconds) / 60)} min left\n`,
    );
  }

  /** As autovacuum would have done by now. */
  private async settle(isNeeded: boolean): Promise<void> {
    if (!isNeeded) return;
    process.stderr.write(`${this.scale.database}: vacuuming and analysing\n`);
    await this.client.query('VACUUM (ANALYZE)');
    await this.client.query('CHECKPOINT');
    await this.client.query(`INSERT INTO growth.steps VALUES ('settled', 0) ON CONFLICT DO NOTHING`);
  }

  private async bytes(): Promise<number> {
    const { rows } = await this.client.query<{ bytes: string }>(
      'SELECT pg_database_size(current_database()) AS bytes',
    );
    return Number(rows[0]!.bytes);
  }

  private async describe(bytes: number): Promise<string[]> {
    const { rows } = await this.client.query<{ name: string; rows: string; bytes: string }>(
      `SELECT t.name, sum(c.reltuples)::bigint AS rows, sum(pg_total_relation_size(c.oid))::bigint AS bytes
       FROM unnest($1::text[]) AS t (name), pg_partition_tree(t.name::regclass) p JOIN pg_class c ON c.oid = p.relid
       WHERE p.isleaf GROUP BY 1 HAVING sum(c.reltuples) > 0
       UNION ALL
       SELECT relname, reltuples::bigint, pg_total_relation_size(oid) FROM pg_class
       WHERE relkind = 'r' AND NOT relispartition AND relnamespace = 'public'::regnamespace AND reltuples > 10000
       ORDER BY bytes DESC`,
      [['events', 'webhook_deliveries', 'webhook_attempts', 'api_calls']],
    );
    return [
      `${this.scale.database}: ${gigabytes(bytes)}`,
      ...rows.map(
        (one) =>
          `  ${one.name}: ${Number(one.rows).toLocaleString('en')} rows, ${gigabytes(Number(one.bytes))}, ` +
          `${Math.round(Number(one.bytes) / Number(one.rows))} bytes a row with its indexes`,
      ),
    ];
  }
}

function gigabytes(bytes: number): string {
  return `${(bytes / GB).toFixed(2)} GB`;
}
