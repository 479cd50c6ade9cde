import type { FinishedCall } from '../infra/http/edge/index.js';
import { callerNetwork } from '../infra/network/ip-address.js';
import type { CallRow } from './call-log.repository.js';

const MINUTE_MS = 60_000;
const ROWS_PER_MINUTE = 60;
/**
 * Of all unknown callers together, for whoever calls from many networks has the 60 rows of each: what ten keys write at
 * their rate limit, and at most 26 million rows of a port in the 30 days that they are kept.
 */
const UNKNOWN_ROWS_PER_MINUTE = 600;

interface Allowance {
  rows: number;
  readonly endsAtMs: number;
}

/**
 * D38, D45: calls without a known key get at most 60 rows a minute and address, an IPv6 /64 being one address, and 600 a
 * minute in all. Only addresses that got a row are remembered, so that nobody fills our memory by changing theirs.
 */
export class UnknownCallerCap {
  private readonly allowances = new Map<string, Allowance>();
  private all: Allowance = { rows: 0, endsAtMs: 0 };
  private sweepAtMs = 0;

  /** Whether this call still gets a row. `nowMs` never runs backwards. */
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

/** What a known key can repeat at no cost of its own; every other answer has cost it a token. */
const REFUSALS: ReadonlySet<number> = new Set([403, 429]);

interface RefusedMinute {
  rows: number;
  readonly endsAtMs: number;
  beyond: { calls: number; last: FinishedCall; readonly timer: NodeJS.Timeout } | null;
}

/**
 * D45: of the calls that a known key is refused with 403 or 429, 60 of a status have a row in a minute of a process. One
 * more row, of the last of them, counts the others once the minute has ended. Their keys exist, so there is an end to
 * what is kept here.
 */
export class RefusedCallCap {
  private readonly minutes = new Map<string, RefusedMinute>();
  private sweepAtMs = 0;

  constructor(private readonly write: (row: CallRow) => void) {}

  /** Whether this call gets a row of its own. `nowMs` never runs backwards. */
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

  /** Writes what was counted so far. */
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
