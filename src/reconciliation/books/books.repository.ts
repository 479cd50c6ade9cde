import { Inject, Injectable } from '@nestjs/common';
import { InjectEntityManager } from '@nestjs/typeorm';
import type { EntityManager } from 'typeorm';
import { APP_CONFIG, type AppConfig } from '../../config/index.js';
import { readWithin, sql } from '../../infra/database/index.js';
import type { BookBreach, BookSettings, BookWalk } from './book-check.js';
import { type KeyRange, type TableName, WALKED_TABLES } from './walked-tables.js';

interface RangeRow {
  last: string | null;
  read: number;
  first_end_at?: Date | null;
  last_end_at?: Date | null;
}

/** SQL of the invariants. Read-only. */
@Injectable()
export class BooksRepository {
  constructor(
    @InjectEntityManager() private readonly manager: EntityManager,
    @Inject(APP_CONFIG) private readonly config: Pick<AppConfig, 'statementTimeouts'>,
  ) {}

  /** The table's next range and its number of rows; null when none is left. `after` is '' at the beginning. */
  async nextRange(
    table: TableName,
    after: string,
    limit: number,
  ): Promise<{ readonly range: KeyRange; readonly read: number } | null> {
    const { first, nextRange } = WALKED_TABLES[table];
    const from = after === '' ? first : after;
    const [row] = await this.patiently((manager) => sql<RangeRow>(manager, nextRange, [from, limit]));
    const { last, read, first_end_at: firstEndAt = null, last_end_at: lastEndAt = null } = row!;
    return last === null ? null : { range: { after: from, upTo: last, firstEndAt, lastEndAt }, read };
  }

  /** Up to `limit` rows of the range that violate the invariant. */
  async listBreaches(
    { query, parameters }: BookWalk,
    range: KeyRange,
    settings: BookSettings,
    limit: number,
  ): Promise<readonly BookBreach[]> {
    return this.patiently((manager) =>
      sql<BookBreach>(manager, `SELECT subject, expected, found FROM (${query}) AS breach LIMIT ${limit}`, [
        range.after,
        range.upTo,
        ...(parameters?.(settings, range) ?? []),
      ]),
    );
  }

  /** A step may take longer than the other statements of a worker (D43). */
  private async patiently<Row>(read: (manager: EntityManager) => Promise<{ rows: Row[] }>): Promise<Row[]> {
    const { reconcileMs } = this.config.statementTimeouts;
    return readWithin(this.manager, async (manager) => (await read(manager)).rows, reconcileMs);
  }
}
