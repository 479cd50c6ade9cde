import type { Pool } from 'pg';

/** Column values as SQL over `i`, which is 1 for the newest row. Other columns get a value of their type. */
export type Columns = Readonly<Record<string, string>>;

const BY_TYPE: Readonly<Record<string, string>> = {
  text: `'x' || i`,
  jsonb: `'{}'`,
  boolean: 'false',
  bytea: `decode(md5(i::text), 'hex')`,
  'timestamp with time zone': 'now()',
};

/**
 * Adds `count` rows to a table of a test database without foreign keys and triggers, because the cost of a plan depends
 * on the number of rows and not on their meaning.
 */
export async function fillTable(pool: Pool, table: string, count: number, columns: Columns): Promise<void> {
  await dropChecks(pool, table);
  const { rows } = await pool.query<{ name: string; type: string }>(
    `SELECT column_name AS name, data_type AS type FROM information_schema.columns
     WHERE table_schema = 'public' AND table_name = $1 AND is_nullable = 'NO' AND column_default IS NULL
       AND is_identity = 'NO'`,
    [table],
  );
  const values: Record<string, string> = {};
  for (const { name, type } of rows) values[name] = BY_TYPE[type] ?? '1';
  Object.assign(values, columns);
  const client = await pool.connect();
  try {
    // Disables triggers and foreign keys.
    await client.query(`SET session_replication_role = 'replica'`);
    await client.query(
      `INSERT INTO ${table} (${Object.keys(values).join(', ')})
       SELECT ${Object.values(values).join(', ')} FROM generate_series(1, ${count}) AS i`,
    );
  } finally {
    await client.query('RESET session_replication_role');
    client.release();
  }
}

async function dropChecks(pool: Pool, table: string): Promise<void> {
  const { rows } = await pool.query<{ name: string }>(
    `SELECT conname AS name FROM pg_constraint WHERE contype = 'c' AND conrelid = $1::regclass`,
    [table],
  );
  for (const { name } of rows) await pool.query(`ALTER TABLE ${table} DROP CONSTRAINT "${name}"`);
}
