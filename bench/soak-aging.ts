import { Client } from 'pg';
import { idFloor } from '../src/common/ids.js';
import { dayOf, partitionName } from '../src/infra/partition-days.js';

/** Retention counts whole days. Rows older than this move back by `DAYS_BACK`, which puts them past their retention. */
export const AGE_MS = 300_000;
const DAYS_BACK = 3;
/** Rows per statement. It only locks rows that no other process uses any more. */
const BATCH = 2_000;

const OLDER = `now() - $1::int * interval '1 millisecond'`;
const BACK = `interval '${DAYS_BACK} days'`;
const TODAY = `now() - interval '1 day'`;

interface AgedTable {
  readonly table: string;
  /** Prefix if partitions are ranges of ids; null if they are ranges of times. */
  readonly idPrefix: 'evt' | null;
  readonly times: readonly string[];
  /** Selects the rows to age. `$1` is the age in milliseconds. */
  readonly where: string;
}

const TABLES: readonly AgedTable[] = [
  {
    table: 'events_sandbox',
    idPrefix: 'evt',
    times: ['created_at'],
    where: `created_at < ${OLDER} AND position IS NOT NULL`,
  },
  {
    table: 'webhook_deliveries_sandbox',
    idPrefix: null,
    times: ['created_at', 'ended_at'],
    where: `created_at < ${OLDER} AND ended_at < ${OLDER}`,
  },
  { table: 'webhook_attempts', idPrefix: null, times: ['recorded_at'], where: `recorded_at < ${OLDER}` },
  { table: 'api_calls', idPrefix: null, times: ['created_at'], where: `created_at < ${OLDER}` },
];

/**
 * Simulates the passing of days. Moves rows that are minutes old to a partition that is days old, where the worker's
 * one-day retention finds them. Partitions of events are ranges of ids, so the ids of events change with the day.
 */
export class Aging {
  private constructor(private readonly client: Client) {}

  static async open(databaseUrl: string): Promise<Aging> {
    const client = new Client({ connectionString: databaseUrl, application_name: 'soak-aging' });
    client.on('error', () => undefined);
    await client.connect();
    return new Aging(client);
  }

  /** @returns the number of rows moved */
  async run(): Promise<number> {
    const day = dayOf(new Date(), -DAYS_BACK);
    let aged = 0;
    for (const table of TABLES) {
      await this.createDay(table, day);
      aged += await this.ageTable(table, day);
    }
    aged += await this.update(
      `UPDATE orders SET created_at = created_at - ${BACK} WHERE id IN (
         SELECT id FROM orders WHERE mode = 'sandbox' AND created_at < ${OLDER} AND created_at > ${TODAY}
           AND status NOT IN ('pending', 'processing', 'canceling') LIMIT ${BATCH * 10} FOR UPDATE SKIP LOCKED)`,
    );
    return (
      aged +
      (await this.update(
        `UPDATE idempotency_keys SET expires_at = now() WHERE created_at < ${OLDER} AND expires_at > now()`,
      ))
    );
  }

  async stop(): Promise<void> {
    await this.client.end().catch(() => undefined);
  }

  private async update(sql: string): Promise<number> {
    return (await this.client.query(sql, [AGE_MS])).rowCount ?? 0;
  }

  private async ageTable({ table, idPrefix, times, where }: AgedTable, day: Date): Promise<number> {
    const today = partitionName(table, dayOf(new Date()));
    const changed = times.map((name) => `'${name}', m.${name} - ${BACK}`);
    if (idPrefix)
      changed.push(`'id', '${idFloor(idPrefix, new Date(day.getTime() + 1))}' || substr(m.id, 15)`);
    let aged = 0;
    for (;;) {
      const moved = await this.update(
        `WITH moved AS (
           DELETE FROM ${today} WHERE ctid = ANY (ARRAY(SELECT ctid FROM ${today} WHERE ${where} LIMIT ${BATCH})) RETURNING *
         )
         INSERT INTO ${table} SELECT (jsonb_populate_record(NULL::${table}, to_jsonb(m) || jsonb_build_object(${changed.join(', ')}))).* FROM moved m`,
      );
      aged += moved;
      if (moved < BATCH) return aged;
    }
  }

  /** Attaches the partition as the service does, so that no reader or writer waits for a lock. */
  private async createDay({ table, idPrefix }: AgedTable, day: Date): Promise<void> {
    const name = partitionName(table, day);
    const { rows } = await this.client.query<{ known: string | null }>('SELECT to_regclass($1) AS known', [
      name,
    ]);
    if (rows[0]!.known !== null) return;
    const bound = (at: Date): string => (idPrefix ? idFloor(idPrefix, at) : at.toISOString());
    await this.client.query(`CREATE TABLE ${name} (LIKE ${table} INCLUDING ALL)`);
    await this.client.query(
      `ALTER TABLE ${table} ATTACH PARTITION ${name} FOR VALUES FROM ('${bound(day)}') TO ('${bound(dayOf(day, 1))}')`,
    );
  }
}
