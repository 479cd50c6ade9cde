import { Injectable } from '@nestjs/common';
import type { ObjectLiteral, SelectQueryBuilder } from 'typeorm';
import { compareText } from '../../common/compare-text.js';
import { type IdPrefix, idFloor, timeOfId } from '../../common/ids.js';
import type { Page } from '../../common/page.js';
import { CursorCodec } from '../crypto/index.js';
import { type DayWindow, dayWindows } from './day-windows.js';

/** A caller's list options (D11). */
export interface ListOptions {
  readonly limit: number;
  readonly cursor: string | undefined;
}

/** Entities that can be listed; `createdAt` keeps microseconds in the table. */
interface Listed extends ObjectLiteral {
  readonly id: string;
}

/** Lists are newest first, except work queues, which are oldest first. */
export type ListOrder = 'newest_first' | 'oldest_first';

/** How to page through a table partitioned by day. */
interface ListedDays<T extends Listed> {
  /** The oldest day to read. */
  readonly oldest: Date;
  /** The newest time to read; null: now. */
  readonly newest: Date | null;
  /** Id prefix when ids are the partition key; null when it is `created_at`. */
  readonly ids: IdPrefix | null;
  /**
   * Queries for a partition that belongs to no day. It is read once and first, because its rows may move into a day in
   * the meantime.
   */
  readonly besides?: readonly SelectQueryBuilder<T>[];
}

/** A row's position in its list: creation time, as sortable text with microseconds, and id. */
type Position = readonly [at: string, id: string];

interface Placed<T> {
  readonly entity: T;
  readonly position: Position;
}

/** A part of a table that is scanned for rows without a suitable index. */
interface Stretch<T extends Listed> {
  /** Selects by an index in list order; its only alias is `t`. */
  readonly rows: SelectQueryBuilder<T>;
  /** Maximum number of rows that one page scans. */
  readonly most: number;
}

/** Sort columns of a list: time and id, or the id alone, which begins with a time. */
interface Sorting {
  readonly direction: 'ASC' | 'DESC';
  readonly byIdAlone: boolean;
}

const SORTINGS: Readonly<Record<ListOrder, Sorting>> = {
  newest_first: { direction: 'DESC', byIdAlone: false },
  oldest_first: { direction: 'ASC', byIdAlone: false },
};

const AT = `to_char(t.created_at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"')`;

/** Pages through a table by (created_at, id): stable under concurrent inserts, no OFFSET. */
@Injectable()
export class KeysetPages {
  constructor(private readonly cursors: CursorCodec) {}

  /**
   * Lists the rows of `query`, whose only alias is `t`. The cursor is bound to the query's text and parameters, and
   * therefore to partner, mode and filters.
   * @throws AppError `invalid_cursor`
   */
  async list<T extends Listed>(
    query: SelectQueryBuilder<T>,
    options: ListOptions,
    order: ListOrder = 'newest_first',
  ): Promise<Page<T>> {
    return this.listMerged([query], options, order);
  }

  /**
   * Like `list`, for several disjoint queries. Each is read through its own index, because no single index orders all
   * rows.
   * @throws AppError `invalid_cursor`
   */
  async listMerged<T extends Listed>(
    queries: readonly SelectQueryBuilder<T>[],
    options: ListOptions,
    order: ListOrder = 'newest_first',
  ): Promise<Page<T>> {
    const scope = queries.map((query) => query.getQueryAndParameters());
    const start = this.startOf(options, scope);
    const found = await this.read(queries, start, options.limit + 1, SORTINGS[order]);
    return this.toPage(found, options.limit, scope);
  }

  /**
   * Like `listMerged`, newest first, for a table partitioned by day: reads a few days at a time until the page is full.
   * With ids as the key, newest means last recorded.
   * @throws AppError `invalid_cursor`
   */
  async listByDay<T extends Listed>(
    queries: readonly SelectQueryBuilder<T>[],
    options: ListOptions,
    { oldest, newest, ids, besides = [] }: ListedDays<T>,
  ): Promise<Page<T>> {
    const scope = [...queries, ...besides].map((query) => query.getQueryAndParameters());
    const start = this.startOf(options, scope);
    const sorting: Sorting = { direction: 'DESC', byIdAlone: ids !== null };
    const reached = start && (ids === null ? new Date(start[0]) : timeOfId(start[1]));
    const undated = await this.read(besides, start, options.limit + 1, sorting);
    const found: Placed<T>[] = [];
    for (const window of dayWindows(reached ?? newest, oldest)) {
      const parts = queries.map((query) => within(query.clone(), window, ids));
      found.push(...(await this.read(parts, start, options.limit + 1 - found.length, sorting)));
      if (found.length > options.limit) break;
    }
    const dated = new Set(found.map(({ entity }) => entity.id));
    const others = undated.filter(({ entity }) => !dated.has(entity.id));
    return this.toPage(merge([found, others], sorting), options.limit, scope);
  }

  /**
   * Like `list`, newest first, for a filter without an index: scans at most `stretch.most` rows. A page that ends there
   * has fewer items than requested, or none, and its cursor continues after the scanned rows.
   * @throws AppError `invalid_cursor`
   */
  async search<T extends Listed>(
    query: SelectQueryBuilder<T>,
    stretch: Stretch<T>,
    options: ListOptions,
  ): Promise<Page<T>> {
    const scope = [query.getQueryAndParameters()];
    const start = this.startOf(options, scope);
    const end = await this.endOf(stretch, start);
    if (end)
      query.andWhere('(t.created_at, t.id) >= (:endAt::timestamptz, :endId)', {
        endAt: end[0],
        endId: end[1],
      });
    const found = await this.read([query], start, options.limit + 1, SORTINGS.newest_first);
    const page = this.toPage(found, options.limit, scope);
    if (!end || page.hasMore) return page;
    return { items: page.items, hasMore: true, nextCursor: this.cursors.encode(end, scope) };
  }

  private startOf({ cursor }: ListOptions, scope: unknown): Position | null {
    return cursor === undefined ? null : (this.cursors.decode(cursor, scope) as unknown as Position);
  }

  /** The last row of the stretch; null when the list ends earlier. */
  private async endOf<T extends Listed>(
    { rows, most }: Stretch<T>,
    start: Position | null,
  ): Promise<Position | null> {
    const newestFirst = SORTINGS.newest_first;
    const [row] = await ordered(behind(rows, start, newestFirst), newestFirst)
      .select(AT, 'at')
      .addSelect('t.id', 'id')
      .offset(most - 1)
      .limit(1)
      .getRawMany<{ at: string; id: string }>();
    return row ? [row.at, row.id] : null;
  }

  private async read<T extends Listed>(
    queries: readonly SelectQueryBuilder<T>[],
    start: Position | null,
    count: number,
    sorting: Sorting,
  ): Promise<readonly Placed<T>[]> {
    const parts: Placed<T>[][] = [];
    // Sequentially, because a list must not hold two connections.
    for (const query of queries) parts.push(await readPart(behind(query, start, sorting), count, sorting));
    return parts.length === 1 ? parts[0]! : merge(parts, sorting).slice(0, count);
  }

  private toPage<T extends Listed>(found: readonly Placed<T>[], limit: number, scope: unknown): Page<T> {
    const items = found.slice(0, limit);
    const hasMore = found.length > limit;
    const last = items.at(-1);
    const nextCursor = hasMore && last ? this.cursors.encode(last.position, scope) : null;
    return { items: items.map(({ entity }) => entity), hasMore, nextCursor };
  }
}

function behind<T extends Listed>(
  query: SelectQueryBuilder<T>,
  start: Position | null,
  { direction, byIdAlone }: Sorting,
): SelectQueryBuilder<T> {
  if (start === null) return query;
  const [cursorAt, cursorId] = start;
  const beyond = direction === 'DESC' ? '<' : '>';
  if (byIdAlone) return query.andWhere(`t.id ${beyond} :cursorId`, { cursorId });
  return query.andWhere(`(t.created_at, t.id) ${beyond} (:cursorAt::timestamptz, :cursorId)`, {
    cursorAt,
    cursorId,
  });
}

/** `query` limited to the days of `window`. */
function within<T extends Listed>(
  query: SelectQueryBuilder<T>,
  { from, to }: DayWindow,
  ids: IdPrefix | null,
): SelectQueryBuilder<T> {
  const column = ids === null ? 't.created_at' : 't.id';
  const bound = (at: Date): string => (ids === null ? at.toISOString() : idFloor(ids, at));
  if (from !== null) query.andWhere(`${column} >= :windowFrom`, { windowFrom: bound(from) });
  return query.andWhere(`${column} < :windowTo`, { windowTo: bound(to) });
}

function ordered<T extends Listed>(
  query: SelectQueryBuilder<T>,
  { direction, byIdAlone }: Sorting,
): SelectQueryBuilder<T> {
  if (byIdAlone) return query.orderBy('t.id', direction);
  return query.orderBy('t.created_at', direction).addOrderBy('t.id', direction);
}

async function readPart<T extends Listed>(
  query: SelectQueryBuilder<T>,
  count: number,
  sorting: Sorting,
): Promise<Placed<T>[]> {
  // A Date would drop the microseconds, which would skip or repeat rows.
  const { entities, raw } = await ordered(query.addSelect(AT, 'cursor_at'), sorting)
    .limit(count)
    .getRawAndEntities<{ cursor_at: string }>();
  return entities.map((entity, i) => ({ entity, position: [raw[i]!.cursor_at, entity.id] }));
}

function merge<T>(parts: readonly (readonly Placed<T>[])[], { direction }: Sorting): readonly Placed<T>[] {
  const sign = direction === 'DESC' ? -1 : 1;
  return parts.flat().sort((a, b) => sign * compare(a.position, b.position));
}

function compare([atA, idA]: Position, [atB, idB]: Position): number {
  return compareText(atA, atB) || compareText(idA, idB);
}
