const FORGET_AFTER_MS = 60_000;

/**
 * The database's clock as this process sees it. An answer's time is always seen too late, by the way back and by
 * whatever kept the process busy; the least late of the last minutes is nearest to the truth.
 */
export class DatabaseClock {
  /** Local minus database time; the younger one replaces the other when that is old. */
  private offsetMs = Infinity;
  private nextOffsetMs = Infinity;
  private renewAt = 0;

  /** @param databaseMs the database's time in an answer that has just come */
  observe(databaseMs: number): void {
    const now = performance.now();
    if (now >= this.renewAt) {
      this.offsetMs = this.nextOffsetMs;
      this.nextOffsetMs = Infinity;
      this.renewAt = now + FORGET_AFTER_MS;
    }
    this.nextOffsetMs = Math.min(this.nextOffsetMs, now - databaseMs);
    this.offsetMs = Math.min(this.offsetMs, this.nextOffsetMs);
  }

  /** A time of the database, by `performance.now()`. At least one answer must have been observed. */
  toLocal(databaseMs: number): number {
    return databaseMs + this.offsetMs;
  }
}
