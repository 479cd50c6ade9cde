const DAY_MS = 86_400_000;
/** A statement over more days than these would lock and plan the partitions of all of them. */
const MAX_DAYS = 16;

/** Times from `from` on, before `to`; null: without a beginning. */
export interface DayWindow {
  readonly from: Date | null;
  readonly to: Date;
}

/**
 * All time from `newest` back, in windows of whole days (UTC) that grow: most pages end in the first. What is older than
 * `oldest` is part of the last one, so that nothing is between them.
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

/**
 * Reads windows one after the other until `limit` rows are read; answers how many were. Fewer than `limit`: there are no
 * more.
 * @param readOne reads at most `most` rows of a window, and answers how many
 */
export async function readByDay(
  windows: Iterable<DayWindow>,
  limit: number,
  readOne: (window: DayWindow, most: number) => Promise<number>,
): Promise<number> {
  let read = 0;
  for (const window of windows) {
    read += await readOne(window, limit - read);
    if (read >= limit) break;
  }
  return read;
}
