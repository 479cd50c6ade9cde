import { Injectable } from '@nestjs/common';
import type { ObjectLiteral, SelectQueryBuilder } from 'typeorm';
import type { Page } from '../../common/page.js';
import { CursorCodec } from '../crypto/index.js';

/** What a caller may choose of a list (D11). */
export interface ListOptions {
  readonly limit: number;
  readonly cursor: string | undefined;
}

/** Entities that can be listed; `createdAt` keeps microseconds in the table. */
interface Listed extends ObjectLiteral {
  readonly id: string;
}

/** Newest first is the rule (D11); what waits for somebody is listed oldest first. */
export type ListOrder = 'newest_first' | 'oldest_first';

/** Pages through a table by (created_at, id): stable while rows are inserted, no OFFSET (D11). */
@Injectable()
export class KeysetPages {
  constructor(private readonly cursors: CursorCodec) {}

  /**
   * Lists what `query` selects; its only alias is `t`. The cursor is bound to the query's text and parameters, so
   * to partner, mode and filters, wherever they are part of it.
   * @throws AppError `invalid_cursor`
   */
  async list<T extends Listed>(
    query: SelectQueryBuilder<T>,
    options: ListOptions,
    order: ListOrder = 'newest_first',
  ): Promise<Page<T>> {
    const scope = query.getQueryAndParameters();
    const [direction, beyond] = order === 'newest_first' ? (['DESC', '<'] as const) : (['ASC', '>'] as const);
    if (options.cursor !== undefined) {
      const [at, id] = this.cursors.decode(options.cursor, scope);
      query.andWhere(`(t.created_at, t.id) ${beyond} (:cursorAt::timestamptz, :cursorId)`, {
        cursorAt: at,
        cursorId: id,
      });
    }
    // A Date would cut the microseconds, and rows would be skipped or repeated.
    const { entities, raw } = await query
      .addSelect('t.created_at::text', 'cursor_at')
      .orderBy('t.created_at', direction)
      .addOrderBy('t.id', direction)
      .limit(options.limit + 1)
      .getRawAndEntities<{ cursor_at: string }>();
    const hasMore = entities.length > options.limit;
    const items = hasMore ? entities.slice(0, options.limit) : entities;
    const last = items.at(-1);
    const lastAt = raw[items.length - 1]?.cursor_at;
    const nextCursor = hasMore && last && lastAt ? this.cursors.encode([lastAt, last.id], scope) : null;
    return { items, hasMore, nextCursor };
  }
}
