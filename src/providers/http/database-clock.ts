const FORGET_AFTER_MS = 60_000;

/** How far local time is ahead of the database's: between `least` and `most` milliseconds, whatever the way took. */
interface OffsetRange {
  readonly least: number;
  readonly most: number;
}

const UNKNOWN: OffsetRange = { least: -Infinity, most: Infinity };

/**
 * The database's clock as this process sees it. The database read its clock between the question and the answer, so
 * each exchange bounds the offset from both sides; the narrowest bounds of the last minutes are nearest to the truth.
 */
export class DatabaseClock {
  private offset = UNKNOWN;
  /** Replaces `offset` when that is old: clocks drift. */
  private nextOffset = UNKNOWN;
  private renewAt = 0;

  /**
   * @param askedAt `performance.now()` before the question left
   * @param databaseMs the database's time in its answer, which has just come
   */
  observe(askedAt: number, databaseMs: number): void {
    const now = performance.now();
    if (now >= this.renewAt) {
      this.offset = this.nextOffset;
      this.nextOffset = UNKNOWN;
      this.renewAt = now + FORGET_AFTER_MS;
    }
    const seen = { least: askedAt - databaseMs, most: now - databaseMs };
    this.nextOffset = intersection(this.nextOffset, seen);
    this.offset = intersection(this.offset, this.nextOffset);
  }

  /** The first moment, by `performance.now()`, at which a time of the database has certainly come. */
  latestLocal(databaseMs: number): number {
    return databaseMs + this.offset.most;
  }

  /** The last moment, by `performance.now()`, before which a time of the database has certainly not come. */
  earliestLocal(databaseMs: number): number {
    // A database clock that was set leaves bounds that contradict each other until they are forgotten.
    return databaseMs + Math.min(this.offset.least, this.offset.most);
  }
}

function intersection(a: OffsetRange, b: OffsetRange): OffsetRange {
  return { least: Math.max(a.least, b.least), most: Math.min(a.most, b.most) };
}
