/**
 * Wall-clock time of this process, injected so that tests can set it. Due times, leases, blocks, buckets and expiry use
 * the database's clock instead (D40).
 */
export abstract class Clock {
  abstract now(): Date;
}

/** The earlier of two times; null is ignored. */
export function earliestOf(at: Date, other: Date | null): Date {
  return other !== null && other < at ? other : at;
}

export class SystemClock extends Clock {
  override now(): Date {
    return new Date();
  }
}
