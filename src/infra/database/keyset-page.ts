import { Injectable } from '@nestjs/common';
import type { ObjectLiteral, SelectQueryBuilder } from 'typeorm';
import type { Page } from '../../common/page.js';
import { type IdPrefix, idFloor, timeOfId } from '../../common/ids.js';
import { CursorCodec } from '../crypto/index.js';
import { type DayWindow, dayWindows } from './day-windows.js';

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

/** How a table that is partitioned by day is paged through. */
export interface ListedDays {
  /** The oldest day that there is. */
  readonly oldest: Date;
  /** The ids' prefix when the ids are what is partitioned; null: `created_at` is. */
  readonly ids: IdPrefix | null;
}

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
    const found = await fetchSorted(query, ['t.created_at', 't.id'], direction, options.limit + 1);
    return this.pageOf(found, options, scope);
  }

  /**
   * As `list`, newest first, of a table that is partitioned by day: some days at a time, until the page is full. By ids,
   * newest is what was recorded last.
   * @throws AppError `invalid_cursor`
   */
  async listByDay<T extends Listed>(
    query: SelectQueryBuilder<T>,
    options: ListOptions,
    { oldest, ids }: ListedDays,
  ): Promise<Page<T>> {
    const scope = query.getQueryAndParameters();
    const keys = ids === null ? (['t.created_at', 't.id'] as const) : (['t.id'] as const);
    let newest: Date | null = null;
    if (options.cursor !== undefined) {
      const [at, id] = this.cursors.decode(options.cursor, scope);
      newest = ids === null ? new Date(String(at)) : timeOfId(String(id));
      const cursor = ids === null ? '(:cursorAt::timestamptz, :cursorId)' : '(:cursorId)';
      query.andWhere(`(${keys.join(', ')}) < ${cursor}`, { cursorAt: at, cursorId: id });
    }
    const found: FoundRow<T>[] = [];
    for (const window of dayWindows(newest, oldest)) {
      const wanted = options.limit + 1 - found.length;
      found.push(...(await fetchSorted(within(query.clone(), window, ids), keys, 'DESC', wanted)));
      if (found.length > options.limit) break;
    }
    return this.pageOf(found, options, scope);
  }

  private pageOf<T extends Listed>(
    found: readonly FoundRow<T>[],
    { limit }: ListOptions,
    scope: unknown,
  ): Page<T> {
    const hasMore = found.length > limit;
    const rows = hasMore ? found.slice(0, limit) : found;
    const last = rows.at(-1);
    const nextCursor = hasMore && last ? this.cursors.encode([last.cursorAt, last.item.id], scope) : null;
    return { items: rows.map(({ item }) => item), hasMore, nextCursor };
  }
}

/** An entity and its `created_at` as text: a Date would cut the microseconds, and rows would be skipped or repeated. */
interface FoundRow<T> {
  readonly item: T;
  readonly cursorAt: string;
}

async function fetchSorted<T extends Listed>(
  query: SelectQueryBuilder<T>,
  keys: readonly string[],
  direction: 'ASC' | 'DESC',
  limit: number,
): Promise<FoundRow<T>[]> {
  for (const key of keys) query.addOrderBy(key, direction);
  const { entities, raw } = await query
    .addSelect('t.created_at::text', 'cursor_at')
    .limit(limit)
    .getRawAndEntities<{ cursor_at: string }>();
  return entities.map((item, index) => ({ item, cursorAt: raw[index]!.cursor_at }));
}

/** `query`, of the days of `window` alone. */
function within<T extends Listed>(
  query: SelectQueryBuilder<T>,
  { from, to }: DayWindow,
  ids: IdPrefix | null,
): SelectQueryBuilder<T> {
  const [column, bound] =
    ids === null
      ? ['t.created_at', (at: Date) => at.toISOString()]
      : ['t.id', (at: Date) => idFloor(ids, at)];
  if (from !== null) query.andWhere(`${column} >= :windowFrom`, { windowFrom: bound(from) });
  return query.andWhere(`${column} < :windowTo`, { windowTo: bound(to) });
}
