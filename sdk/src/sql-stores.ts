import type { CursorStore } from './events.js';
import { type Intent, type IntentOutcome, type IntentStore, storageNameOf } from './purchases.js';

/** Runs one statement with `$1` parameters, as `pg` does, and returns its rows. */
export type SqlQuery = (
  text: string,
  parameters: readonly unknown[],
) => Promise<readonly Record<string, unknown>[]>;

/** The tables of both stores, for your own migrations. They work in PostgreSQL and SQLite. */
export const SQL_STORE_TABLES = `
CREATE TABLE IF NOT EXISTS esim_intents (id text PRIMARY KEY, intent text NOT NULL, outcome text);
CREATE TABLE IF NOT EXISTS esim_cursors (name text PRIMARY KEY, cursor text NOT NULL);`;

// How each outcome starts as JSON.
const REFUSED = `'{"refusedWith"%'`;
const BOUGHT = `'{"resultId"%'`;

/** Stores intents in your table. Each call must be a separate transaction that is committed when it resolves. */
export class SqlIntentStore implements IntentStore {
  constructor(private readonly query: SqlQuery) {}

  async add(intent: Intent): Promise<Intent> {
    const name = storageNameOf(intent);
    // Reopens a refused intent only once. A concurrent caller finds it open and leaves it unchanged.
    await this.query(
      `INSERT INTO esim_intents (id, intent) VALUES ($1, $2)
       ON CONFLICT (id) DO UPDATE SET intent = excluded.intent, outcome = NULL
       WHERE esim_intents.outcome LIKE ${REFUSED}`,
      [name, JSON.stringify(intent)],
    );
    const [row] = await this.query('SELECT intent FROM esim_intents WHERE id = $1', [name]);
    return JSON.parse(row!['intent'] as string) as Intent;
  }

  async finish(intent: Intent, outcome: IntentOutcome): Promise<void> {
    // Version 0.1.0 stored a top-up under its bare id.
    await this.query(
      `UPDATE esim_intents SET outcome = $1
       WHERE id IN ($2, $3) AND intent = $4 AND (outcome IS NULL OR outcome NOT LIKE ${BOUGHT})`,
      [JSON.stringify(outcome), storageNameOf(intent), intent.id, JSON.stringify(intent)],
    );
  }

  async listOpen(): Promise<readonly Intent[]> {
    const rows = await this.query('SELECT intent FROM esim_intents WHERE outcome IS NULL', []);
    return rows.map((row) => JSON.parse(row['intent'] as string) as Intent);
  }
}

/** Stores a cursor of the feed in your table under a name. */
export class SqlCursorStore implements CursorStore {
  constructor(
    private readonly query: SqlQuery,
    private readonly name = 'default',
  ) {}

  async load(): Promise<string | null> {
    const [row] = await this.query('SELECT cursor FROM esim_cursors WHERE name = $1', [this.name]);
    return (row?.['cursor'] as string | undefined) ?? null;
  }

  async save(cursor: string): Promise<void> {
    await this.query(
      'INSERT INTO esim_cursors (name, cursor) VALUES ($1, $2) ON CONFLICT (name) DO UPDATE SET cursor = excluded.cursor',
      [this.name, cursor],
    );
  }
}
