import { DAY_MS } from '../../common/durations.js';

/** Maximum days of a window, because a statement locks and plans the partitions of all its days. */
const MAX_DAYS = 16;

/** The times from `from`, inclusive, to `to`, exclusive; a null `from` means no lower bound. */
export interface DayWindow {
  readonly from: Date | null;
  readonly to: Date;
}

/**
 * All time back from `newest`, in growing windows of whole days (UTC). Most pages end in the first window. The last one
 * includes everything older than `oldest`, so that no row is left out.
 * @param newest null: begins with tomorrow, because a clock may be ahead
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
 * All time from `after` to `newest`, in growing windows of whole days (UTC).
 * @param after null: from the beginning; the first window then includes everything older than `oldest`
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

/** Maximum windows of one step, because the locks on their partitions last until its transaction ends. */
const WINDOWS_PER_STEP = 4;

/**
 * Where a step continues: after this row, or at this time if the id is empty. Text, because a Date would drop the
 * microseconds.
 */
export interface RowCursor {
  readonly at: string;
  readonly id: string;
}

/** Result of a step over the days of a table. */
export interface DayStep {
  /** Where the next step continues. */
  readonly cursor: RowCursor | null;
  /** Whether there may be more to read. */
  readonly isMore: boolean;
}

/** Rows read from a window: all of them, or the first `most`. */
export interface WindowRows {
  readonly read: number;
  /** The last row read; null if there is none. */
  readonly last: RowCursor | null;
}

/**
 * Reads at most `limit` rows, one window after another. A step is one transaction, so it reads few windows.
 * @param direction order of the windows
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
    // Every id is greater than the empty text.
    cursor = end && { at: end.toISOString(), id: '' };
  }
  return { cursor, isMore: false };
}
