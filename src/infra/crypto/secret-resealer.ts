import type { Client } from 'pg';
import type { SecretBox } from './secret-box.js';
import { SEALED_COLUMNS, type SealedColumn } from './sealed-columns.js';

/** Rows per step, which reads, re-encrypts and writes them in one short statement. */
const STEP_ROWS = 500;

/** $1: the last owner of the previous step, $2: number of rows, $3: the newest key's prefix. */
const nextOf = ({ table, owner, column }: SealedColumn): string =>
  `SELECT ${owner} AS owner, ${column} AS sealed FROM ${table}
   WHERE ${owner} > $1 AND NOT starts_with(${column}, $3) ORDER BY ${owner} LIMIT $2`;

/** $1: owners, $2: the texts as read, $3: re-encrypted. A row that has changed since is left to the next run. */
const replaceIn = ({ table, owner, column }: SealedColumn): string =>
  `UPDATE ${table} t SET ${column} = n.again
   FROM unnest($1::text[], $2::text[], $3::text[]) AS n (owner, sealed, again)
   WHERE t.${owner} = n.owner AND t.${column} = n.sealed`;

/** $1: the newest key's prefix. */
const countOf = ({ table, column }: SealedColumn): string =>
  `SELECT count(*)::int AS rows FROM ${table} WHERE NOT starts_with(${column}, $1)`;

/** Result of one column. */
export interface ResealedColumn {
  readonly name: string;
  readonly resealed: number;
  /**
   * Rows that could not be decrypted, because the key has left the ring too early or the text was altered. They do not
   * change.
   */
  readonly unreadable: number;
  /**
   * Rows encrypted with an older key when the run ended; 0 means that the older keys are no longer needed for this
   * column.
   */
  readonly left: number;
}

/**
 * Re-encrypts every stored secret with the newest key of the ring (D37), so that older keys can be dropped. Works in
 * small steps while the service runs. It is repeatable, and after an interruption the next run continues.
 */
export class SecretResealer {
  constructor(
    private readonly client: Client,
    private readonly box: SecretBox,
    /** Called after each step with the number of processed rows of the column. */
    private readonly onProgress: (column: string, rows: number) => void = () => undefined,
  ) {}

  async run(): Promise<readonly ResealedColumn[]> {
    const report: ResealedColumn[] = [];
    for (const column of SEALED_COLUMNS) report.push(await this.resealColumn(column));
    return report;
  }

  private async resealColumn(column: SealedColumn): Promise<ResealedColumn> {
    let [after, resealed, unreadable] = ['', 0, 0];
    for (;;) {
      const { rows } = await this.client.query<{ owner: string; sealed: string }>(nextOf(column), [
        after,
        STEP_ROWS,
        this.box.newestPrefix,
      ]);
      if (rows.length === 0) break;
      after = rows.at(-1)!.owner;
      const again = rows.flatMap((row) => this.reseal(row));
      unreadable += rows.length - again.length;
      resealed += await this.replace(column, again);
      this.onProgress(column.name, resealed);
    }
    const { rows } = await this.client.query<{ rows: number }>(countOf(column), [this.box.newestPrefix]);
    return { name: column.name, resealed, unreadable, left: rows[0]!.rows };
  }

  private reseal(row: { owner: string; sealed: string }): { owner: string; sealed: string; again: string }[] {
    try {
      return [{ ...row, again: this.box.seal(this.box.open(row.sealed, row.owner), row.owner) }];
    } catch {
      return [];
    }
  }

  private async replace(
    column: SealedColumn,
    again: readonly { owner: string; sealed: string; again: string }[],
  ): Promise<number> {
    const { rowCount } = await this.client.query(replaceIn(column), [
      again.map((row) => row.owner),
      again.map((row) => row.sealed),
      again.map((row) => row.again),
    ]);
    return rowCount ?? 0;
  }
}
