import { Client } from 'pg';
import { eventually, type TestDatabase } from '../harness/index.js';

/** An advisory lock number that nothing else uses. */
const LOCK = 770_001;
const SET_UP = `
  CREATE OR REPLACE FUNCTION wait_before_note() RETURNS trigger LANGUAGE plpgsql AS
    $$ BEGIN PERFORM pg_advisory_xact_lock_shared(${LOCK}); RETURN NEW; END $$;
  CREATE OR REPLACE TRIGGER wait_before_note BEFORE UPDATE OF upstream_placed_at ON orders
    FOR EACH ROW EXECUTE FUNCTION wait_before_note();
  CREATE OR REPLACE TRIGGER wait_before_note BEFORE UPDATE OF upstream_placed_at ON topups
    FOR EACH ROW EXECUTE FUNCTION wait_before_note()`;

/**
 * Blocks the statement that records a placement just before the placement call, so that a process stops exactly there.
 */
export class HeldNotes {
  private constructor(private readonly client: Client) {}

  static async hold({ url }: TestDatabase): Promise<HeldNotes> {
    const client = new Client({ connectionString: url });
    // A failed test leaves it open, and the drop of its database ends it.
    client.on('error', () => undefined);
    await client.connect();
    await client.query(SET_UP);
    await client.query('SELECT pg_advisory_lock($1)', [LOCK]);
    return new HeldNotes(client);
  }

  /** Waits until `count` notes are blocked. */
  async waiters(count: number): Promise<void> {
    await eventually(`${count} notes wait`, async () => {
      const { rows } = await this.client.query<{ n: number }>(
        `SELECT count(*)::int AS n FROM pg_locks
         WHERE locktype = 'advisory' AND objid = $1 AND NOT granted
           AND database = (SELECT oid FROM pg_database WHERE datname = current_database())`,
        [LOCK],
      );
      return rows[0]!.n >= count;
    });
  }

  /** Unblocks the statements. */
  async release(): Promise<void> {
    await this.client.end();
  }
}
