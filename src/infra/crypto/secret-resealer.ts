import type { Client } from 'pg';
import type { SecretBox } from './secret-box.js';

/** Rows of one step: read, sealed again and written in one short statement. */
const STEP_ROWS = 500;

interface SealedColumn {
  readonly name: string;
  /** $1: the last owner of the step before, $2: rows, $3: what the newest key's secrets begin with. */
  readonly next: string;
  /** $1: owners, $2: as they were read, $3: sealed again. A row that has changed since is left to the next run. */
  readonly replace: string;
  readonly count: string;
}

/** Every column with sealed text; a test finds one that is missing here. The owner is what its ciphertext is bound to. */
const SEALED_COLUMNS: readonly SealedColumn[] = [
  {
    name: 'install data of eSIMs',
    next: `SELECT id AS owner, install_secrets AS sealed FROM esims
      WHERE id > $1 AND NOT starts_with(install_secrets, $3) ORDER BY id LIMIT $2`,
    replace: `UPDATE esims t SET install_secrets = n.again
      FROM unnest($1::text[], $2::text[], $3::text[]) AS n (owner, sealed, again)
      WHERE t.id = n.owner AND t.install_secrets = n.sealed`,
    count: 'SELECT count(*)::int AS rows FROM esims WHERE NOT starts_with(install_secrets, $1)',
  },
  {
    name: 'signing secrets of endpoints',
    next: `SELECT id AS owner, secret AS sealed FROM webhook_endpoints
      WHERE id > $1 AND NOT starts_with(secret, $3) ORDER BY id LIMIT $2`,
    replace: `UPDATE webhook_endpoints t SET secret = n.again
      FROM unnest($1::text[], $2::text[], $3::text[]) AS n (owner, sealed, again)
      WHERE t.id = n.owner AND t.secret = n.sealed`,
    count: 'SELECT count(*)::int AS rows FROM webhook_endpoints WHERE NOT starts_with(secret, $1)',
  },
  {
    name: 'previous signing secrets of endpoints',
    next: `SELECT id AS owner, previous_secret AS sealed FROM webhook_endpoints
      WHERE id > $1 AND NOT starts_with(previous_secret, $3) ORDER BY id LIMIT $2`,
    replace: `UPDATE webhook_endpoints t SET previous_secret = n.again
      FROM unnest($1::text[], $2::text[], $3::text[]) AS n (owner, sealed, again)
      WHERE t.id = n.owner AND t.previous_secret = n.sealed`,
    count: 'SELECT count(*)::int AS rows FROM webhook_endpoints WHERE NOT starts_with(previous_secret, $1)',
  },
  {
    name: 'profiles of the sandbox provider',
    next: `SELECT reference AS owner, profiles AS sealed FROM sandbox_upstream_orders
      WHERE reference > $1 AND NOT starts_with(profiles, $3) ORDER BY reference LIMIT $2`,
    replace: `UPDATE sandbox_upstream_orders t SET profiles = n.again
      FROM unnest($1::text[], $2::text[], $3::text[]) AS n (owner, sealed, again)
      WHERE t.reference = n.owner AND t.profiles = n.sealed`,
    count: 'SELECT count(*)::int AS rows FROM sandbox_upstream_orders WHERE NOT starts_with(profiles, $1)',
  },
];

/** What became of one column. */
export interface ResealedColumn {
  readonly name: string;
  readonly resealed: number;
  /** Could not be opened: the key left the ring too early, or the text was altered. Left as they are. */
  readonly unreadable: number;
  /** Rows that another key than the newest sealed, when the run ended; 0: older keys are no longer needed for it. */
  readonly left: number;
}

/**
 * Seals every stored secret with the newest key of the ring (D37), so that the keys before it can be dropped. In small
 * steps beside the running service; repeatable, and a run that was cut goes on where it is needed.
 */
export class SecretResealer {
  constructor(
    private readonly client: Client,
    private readonly box: SecretBox,
    /** Called after each step with the rows of the column so far. */
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
      const { rows } = await this.client.query<{ owner: string; sealed: string }>(column.next, [
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
    const { rows } = await this.client.query<{ rows: number }>(column.count, [this.box.newestPrefix]);
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
    const { rowCount } = await this.client.query(column.replace, [
      again.map((row) => row.owner),
      again.map((row) => row.sealed),
      again.map((row) => row.again),
    ]);
    return rowCount ?? 0;
  }
}
