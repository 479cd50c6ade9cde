import { DAY_MS } from '../../common/durations.js';

/** A statement over more days than these would lock and plan the partitions of all of them. */
const MAX_DAYS = 16;

/** Times from `from` on, before `to`; null: without a beginning. */
export interface DayWindow {
  readonly from: Date | null;
  readonly to: Date;
}

/**
 * All time from `newest` back, in windows of whole days (UTC) that grow: most pages end in the first. The last one
 * also holds everything older than `oldest`, so that no row is left out.
 * @param newest null: begins with tomorrow, as a clock that is ahead may have it
 */
export function* dayWindows(newest: Date | null, oldest: Date, now = new Date()): Generator<DayWindow> {
  let to = Math.floor((newest ?? now).getTime() / DAY_MS) + (newest === null ? 2 : 1);
  for (let width = 2; ; width = Math.min(width * 2, MAX_DAYS)) {
    const from = to - width;
    const isLast = from * DAY_MS <= oldest.getTime();
    yield { from: isLast ? null : new Date(from * DAY_MS), to: new Date(to * DAY_MS) };
    if (isLast) return;
    to = from;
  }
}

/**
 * All time from `after` to `newest`, in windows of whole days (UTC) that grow.
 * @param after null: from the beginning; what is older than `oldest` is part of the first window
 */
export function* laterDayWindows(after: Date | null, oldest: Date, newest: Date): Generator<DayWindow> {
  let day = Math.floor((after ?? oldest).getTime() / DAY_MS);
  let from = after;
  for (let width = 2; ; width = Math.min(width * 2, MAX_DAYS)) {
    day += width;
    const to = new Date(day * DAY_MS);
    yield { from, to };
    if (to > newest) return;
    from = to;
  }
}

/** The most windows of one step: the locks of their partitions last until its transaction ends. */
const WINDOWS_PER_STEP = 4;

/** Where a step goes on: behind this row, or behind all rows of the time. A text: a Date would cut microseconds. */
export interface RowCursor {
  readonly at: string;
  readonly id: string;
}

/** Result of a step over the days of a table. */
export interface DayStep {
  /** Where the next step goes on. */
  readonly cursor: RowCursor | null;
  /** Whether there may be more to read. */
  readonly isMore: boolean;
}

/** Rows of a window, or its first `most`. */
export interface WindowRows {
  readonly read: number;
  /** The last of them; null when there is none. */
  readonly last: RowCursor | null;
}

/**
 * Reads at most `limit` rows, in one window after the other, and in few of them: a step is a transaction.
 * @param direction in which the windows follow each other
 */
export async function readByDay(
  windows: Iterable<DayWindow>,
  direction: 'earlier' | 'later',
  limit: number,
  readOne: (window: DayWindow, most: number) => Promise<WindowRows>,
): Promise<DayStep> {
  let cursor: RowCursor | null = null;
  let left = limit;
  let count = 0;
  for (const window of windows) {
    if (count++ === WINDOWS_PER_STEP) return { cursor, isMore: true };
    const { read, last } = await readOne(window, left);
    left -= read;
    if (left <= 0) return { cursor: last, isMore: true };
    const end = direction === 'earlier' ? window.from : window.to;
    // No id is smaller than none.
    cursor = end && { at: end.toISOString(), id: '' };
  }
  return { cursor, isMore: false };
}
