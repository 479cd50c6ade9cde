import { Injectable } from '@nestjs/common';
import type { EntityManager } from 'typeorm';
import type { Page } from '../../common/page.js';
import { CursorCodec } from '../crypto/index.js';
import { sql, type SqlParameter } from './sql.js';

/** What a caller may choose of a list (D11). */
export interface ListOptions {
  readonly limit: number;
  readonly cursor: string | undefined;
}

/** WHERE conditions joined by AND; `?` in a condition stands for its parameter. */
export class Conditions {
  readonly parts: string[] = [];
  readonly parameters: SqlParameter[] = [];

  /** Adds `condition` with its parameter. */
  and(condition: string, parameter: SqlParameter): this {
    this.parameters.push(parameter);
    this.parts.push(condition.replace('?', `$${this.parameters.length}`));
    return this;
  }

  /** Adds `condition` unless the filter is absent. */
  andIf(condition: string, parameter: SqlParameter | undefined): this {
    return parameter === undefined ? this : this.and(condition, parameter);
  }

  get where(): string {
    return this.parts.length === 0 ? 'true' : this.parts.join(' AND ');
  }
}

export interface KeysetQuery {
  /** Columns of the row; the table's alias is `t`. */
  readonly columns: string;
  /** FROM clause with the alias `t`, which has `created_at` and `id` (or `idColumn`). */
  readonly from: string;
  readonly conditions: Conditions;
  /** What the cursor is bound to besides the conditions' parameters: the list's name, partner, mode (D11). */
  readonly scope: readonly (string | null)[];
  readonly options: ListOptions;
  readonly idColumn?: string;
  readonly order?: 'newest first' | 'oldest first';
}

type Positioned<Row> = Row & { cursor_at: string; cursor_id: string };

/** Pages through tables by (created_at, id): stable while rows are inserted, no OFFSET (D11). */
@Injectable()
export class KeysetPages {
  constructor(private readonly cursors: CursorCodec) {}

  /** @throws AppError `invalid_cursor` */
  async list<Row>(manager: EntityManager, query: KeysetQuery): Promise<Page<Row>> {
    const { conditions, options } = query;
    const scope = [query.scope, conditions.parts, conditions.parameters];
    const newestFirst = query.order !== 'oldest first';
    const id = `t.${query.idColumn ?? 'id'}`;
    const parameters = [...conditions.parameters];
    let where = conditions.where;
    if (options.cursor !== undefined) {
      const [at, after] = this.cursors.decode(options.cursor, scope);
      parameters.push(String(at), String(after));
      where += ` AND (t.created_at, ${id}) ${newestFirst ? '<' : '>'} ($${parameters.length - 1}::timestamptz, $${parameters.length})`;
    }
    const direction = newestFirst ? 'DESC' : 'ASC';
    // The cursor keeps microseconds: a Date would cut them and skip or repeat rows.
    const { rows } = await sql<Positioned<Row>>(
      manager,
      `SELECT ${query.columns}, t.created_at::text AS cursor_at, ${id} AS cursor_id FROM ${query.from}
       WHERE ${where} ORDER BY t.created_at ${direction}, ${id} ${direction} LIMIT ${options.limit + 1}`,
      parameters,
    );
    const hasMore = rows.length > options.limit;
    const items = hasMore ? rows.slice(0, options.limit) : rows;
    const last = items.at(-1);
    const nextCursor = hasMore && last ? this.cursors.encode([last.cursor_at, last.cursor_id], scope) : null;
    return { items, hasMore, nextCursor };
  }
}
