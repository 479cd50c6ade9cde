import { sql, type Tx } from '../database/index.js';
import type { WakeUps } from './wake-ups.js';

export interface HurriedReferences {
  readonly provider: string;
  readonly references: readonly string[];
  /** Not sooner than this after the last look. */
  readonly restMs: number;
}

/** Makes open rows due now, because their upstream says that something happened: only a look, no belief. */
export abstract class HurryRows {
  /** `table`: a constant of the code, never input: it stands in the SQL as it is. */
  protected constructor(
    private readonly table: string,
    private readonly wakeUps: WakeUps,
  ) {}

  /** Rows that are ended, unknown or another provider's stay as they are. */
  async execute(tx: Tx, { provider, references, restMs }: HurriedReferences): Promise<void> {
    const { rows } = await sql<{ partner_id: string; next_attempt_at: Date }>(
      tx.manager,
      `UPDATE ${this.table} t SET next_attempt_at = due.at
       FROM (SELECT id, greatest(now(), updated_at + $3 * interval '1 millisecond') AS at FROM ${this.table}
             WHERE provider = $1 AND provider_reference = ANY($2::text[])
             ORDER BY id FOR UPDATE) AS due
       WHERE t.id = due.id AND t.next_attempt_at > due.at
       RETURNING t.partner_id, t.next_attempt_at`,
      [provider, references, restMs],
    );
    tx.afterCommit(() => rows.forEach((row) => this.wakeUps.requestAt(row.partner_id, row.next_attempt_at)));
  }
}
