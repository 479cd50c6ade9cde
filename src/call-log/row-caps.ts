import { MINUTE_MS } from '../common/durations.js';
import type { FinishedCall } from '../infra/http/edge/index.js';
import { callerNetwork } from '../infra/network/ip-address.js';
import type { CallRow } from './call-log.repository.js';

const ROWS_PER_MINUTE = 60;
/**
 * Limit for all unknown callers together, because a caller from many networks gets 60 rows for each. It equals ten keys
 * at their rate limit, and at most 26 million rows per port in the 30 days of retention.
 */
const UNKNOWN_ROWS_PER_MINUTE = 600;

interface Allowance {
  rows: number;
  readonly endsAtMs: number;
}

/**
 * D38, D45: calls without a known key get at most 60 rows per minute and address (an IPv6 /64 counts as one), and 600
 * per minute in total. Only addresses that got a row are stored, so that nobody can fill the memory by changing theirs.
 */
export class UnknownCallerCap {
  private readonly allowances = new Map<string, Allowance>();
  private all: Allowance = { rows: 0, endsAtMs: 0 };
  private sweepAtMs = 0;

  /** Whether this call gets a row. `nowMs` never decreases. */
  admits(remoteAddress: string, nowMs: number): boolean {
    this.sweep(nowMs);
    if (nowMs >= this.all.endsAtMs) this.all = { rows: 0, endsAtMs: nowMs + MINUTE_MS };
    if (this.all.rows >= UNKNOWN_ROWS_PER_MINUTE) return false;
    const own = this.allowanceOf(callerNetwork(remoteAddress), nowMs);
    if (own.rows >= ROWS_PER_MINUTE) return false;
    own.rows++;
    this.all.rows++;
    return true;
  }

  private allowanceOf(network: string, nowMs: number): Allowance {
    const known = this.allowances.get(network);
    if (known && known.endsAtMs > nowMs) return known;
    const allowance = { rows: 0, endsAtMs: nowMs + MINUTE_MS };
    this.allowances.set(network, allowance);
    return allowance;
  }

  private sweep(nowMs: number): void {
    if (nowMs < this.sweepAtMs) return;
    this.sweepAtMs = nowMs + MINUTE_MS;
    for (const [network, { endsAtMs }] of this.allowances)
      if (endsAtMs <= nowMs) this.allowances.delete(network);
  }
}

/** Statuses that a known key still gets when its bucket is empty; every other response costs a token. */
const REFUSALS: ReadonlySet<number> = new Set([403, 429]);

interface RefusedMinute {
  rows: number;
  readonly endsAtMs: number;
  beyond: { calls: number; last: FinishedCall; readonly timer: NodeJS.Timeout } | null;
}

/**
 * A known key's calls refused with 403 or 429 get 60 rows per status, minute and process. One more row, of the last
 * call, counts the others once the minute has ended. The keys exist, so the memory used here is bounded.
 */
export class RefusedCallCap {
  private readonly minutes = new Map<string, RefusedMinute>();
  private sweepAtMs = 0;

  constructor(private readonly write: (row: CallRow) => void) {}

  /** Whether this call gets its own row. `nowMs` never decreases. */
  admits(call: FinishedCall, nowMs: number): boolean {
    if (!REFUSALS.has(call.status)) return true;
    this.sweep(nowMs);
    const id = `${call.keyId} ${call.status}`;
    const minute = this.minuteOf(id, nowMs);
    if (minute.rows < ROWS_PER_MINUTE) {
      minute.rows++;
      return true;
    }
    if (minute.beyond) {
      minute.beyond.calls++;
      minute.beyond.last = call;
    } else {
      const timer = setTimeout(() => this.end(id), minute.endsAtMs - nowMs).unref();
      minute.beyond = { calls: 1, last: call, timer };
    }
    return false;
  }

  /** Writes the counts so far. */
  close(): void {
    for (const id of this.minutes.keys()) this.end(id);
  }

  private minuteOf(id: string, nowMs: number): RefusedMinute {
    const known = this.minutes.get(id);
    if (known && known.endsAtMs > nowMs) return known;
    this.end(id);
    const minute = { rows: 0, beyond: null, endsAtMs: nowMs + MINUTE_MS };
    this.minutes.set(id, minute);
    return minute;
  }

  private end(id: string): void {
    const beyond = this.minutes.get(id)?.beyond;
    this.minutes.delete(id);
    if (!beyond) return;
    clearTimeout(beyond.timer);
    this.write({ ...beyond.last, suppressed: beyond.calls });
  }

  private sweep(nowMs: number): void {
    if (nowMs < this.sweepAtMs) return;
    this.sweepAtMs = nowMs + MINUTE_MS;
    for (const [id, { endsAtMs }] of this.minutes) if (endsAtMs <= nowMs) this.end(id);
  }
}
