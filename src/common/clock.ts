/**
 * Wall-clock time of this process, injected so that tests can set it. Due times, leases, blocks, buckets and
 * expiry never use it: they use the database's clock (D40).
 */
export abstract class Clock {
  abstract now(): Date;
}

/** The earlier of two times; null counts as none. */
export function earliestOf(at: Date, other: Date | null): Date {
  return other !== null && other < at ? other : at;
}

export class SystemClock extends Clock {
  override now(): Date {
    return new Date();
  }
}
