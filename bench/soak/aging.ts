import { Client } from 'pg';
import { idFloor } from '../../src/common/ids.js';
import { dayOf, partitionName } from '../../src/infra/partition-days.js';

/** Settings count whole days: what is older than this is made older by DAYS_BACK, and is past its retention then. */
export const AGE_MS = 300_000;
const DAYS_BACK = 3;
/** Of one statement: its locks are rows that nobody works on any more. */
const BATCH = 2_000;

interface AgedTable {
  readonly table: string;
  readonly idPrefix: 'evt' | null;
  /** Columns that are changed, as SQL over a row `m`. */
  readonly changed: Readonly<Record<string, string>>;
  /** The rows to age, over `$1`, the age in milliseconds. */
  readonly where: string;
}

const OLDER = `now() - $1::int * interval '1 millisecond'`;
const BACK = `interval '${DAYS_BACK} days'`;
const TODAY = `now() - interval '1 day'`;

/**
 * Lets days pass: rows of some minutes ago are moved to a partition of some days ago, where the worker's retention of one
 * day finds them. The ids of events are changed with their days, for these are ranges of ids.
 */
export class Aging {
  private constructor(private readonly client: Client) {}

  static async open(databaseUrl: string): Promise<Aging> {
    const client = new Client({ connectionString: databaseUrl, application_name: 'soak-aging' });
    client.on('error', () => undefined);
    await client.connect();
    return new Aging(client);
  }

  /** Ages what is old enough; answers how many rows. */
  async run(): Promise<number> {
    const day = dayOf(new Date(), -DAYS_BACK);
    let aged = 0;
    for (const table of TABLES) {
      await this.makeDay(table, day);
      aged += await this.ageTable(table, day);
    }
    const orders = await this.client.query(
      `UPDATE orders SET created_at = created_at - ${BACK} WHERE id IN (
         SELECT id FROM orders WHERE mode = 'sandbox' AND created_at < ${OLDER} AND created_at > ${TODAY}
           AND status NOT IN ('pending', 'processing', 'canceling') LIMIT ${BATCH * 10} FOR UPDATE SKIP LOCKED)`,
      [AGE_MS],
    );
    const keys = await this.client.query(
      `UPDATE idempotency_keys SET expires_at = now() WHERE created_at < ${OLDER} AND expires_at > now()`,
      [AGE_MS],
    );
    return aged + (orders.rowCount ?? 0) + (keys.rowCount ?? 0);
  }

  async stop(): Promise<void> {
    await this.client.end().catch(() => undefined);
  }

  private async ageTable({ table, changed, where, idPrefix }: AgedTable, day: Date): Promise<number> {
    const today = partitionName(table, dayOf(new Date()));
    const stem = idPrefix && idFloor(idPrefix, new Date(day.getTime() + 1));
    const columns = Object.entries(changed).map(
      ([name, sql]) => `'${name}', ${sql.replace('$stem', `'${stem}'`)}`,
    );
    let aged = 0;
    for (;;) {
      const { rowCount } = await this.client.query(
        `WITH moved AS (
           DELETE FROM ${today} WHERE ctid = ANY (ARRAY(SELECT ctid FROM ${today} WHERE ${where} LIMIT ${BATCH})) RETURNING *
         )
         INSERT INTO ${table} SELECT (jsonb_populate_record(NULL::${table}, to_jsonb(m) || jsonb_build_object(${columns.join(', ')}))).* FROM moved m`,
        [AGE_MS],
      );
      aged += rowCount ?? 0;
      if ((rowCount ?? 0) < BATCH) return aged;
    }
  }

  /** As the service makes its days: no lock that readers or writers would wait for. */
  private async makeDay({ table, idPrefix }: AgedTable, day: Date): Promise<void> {
    const name = partitionName(table, day);
    const { rows } = await this.client.query<{ known: boolean }>(
      'SELECT to_regclass($1) IS NOT NULL AS known',
      [name],
    );
    if (rows[0]!.known) return;
    const next = dayOf(day, 1);
    const bounds = idPrefix
      ? [idFloor(idPrefix, day), idFloor(idPrefix, next)]
      : [day.toISOString(), next.toISOString()];
    await this.client.query(`CREATE TABLE ${name} (LIKE ${table} INCLUDING ALL)`);
    await this.client.query(
      `ALTER TABLE ${table} ATTACH PARTITION ${name} FOR VALUES FROM ('${bounds[0]}') TO ('${bounds[1]}')`,
    );
  }
}

const TABLES: readonly AgedTable[] = [
  {
    table: 'events_sandbox',
    idPrefix: 'evt',
    changed: { id: '$stem || substr(m.id, 15)', created_at: `m.created_at - ${BACK}` },
    where: `created_at < ${OLDER} AND position IS NOT NULL`,
  },
  {
    table: 'webhook_deliveries_sandbox',
    idPrefix: null,
    changed: { created_at: `m.created_at - ${BACK}`, ended_at: `m.ended_at - ${BACK}` },
    where: `created_at < ${OLDER} AND ended_at < ${OLDER}`,
  },
  {
    table: 'webhook_attempts',
    idPrefix: null,
    changed: { recorded_at: `m.recorded_at - ${BACK}` },
    where: `recorded_at < ${OLDER}`,
  },
  {
    table: 'api_calls',
    idPrefix: null,
    changed: { created_at: `m.created_at - ${BACK}` },
    where: `created_at < ${OLDER}`,
  },
];
