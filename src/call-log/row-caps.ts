import type { FinishedCall } from '../infra/http/edge/index.js';
import { callerNetwork } from '../infra/network/ip-address.js';
import type { CallRow } from './call-log.repository.js';

const MINUTE_MS = 60_000;
const ROWS_PER_MINUTE = 60;
/** Beyond these, new addresses share one allowance: whoever rotates addresses must not fill our memory. */
const MAX_ADDRESSES = 10_000;
const EVERYBODY_ELSE = '';

interface Allowance {
  rows: number;
  readonly endsAtMs: number;
}

/** D38: calls without a known key get at most 60 rows a minute and address, an IPv6 /64 being one address. */
export class UnknownCallerCap {
  private readonly allowances = new Map<string, Allowance>();
  private sweepAtMs = 0;

  /** Whether this call still gets a row. `nowMs` never runs backwards. */
  admits(remoteAddress: string, nowMs: number): boolean {
    this.sweep(nowMs);
    const allowance = this.allowanceOf(callerNetwork(remoteAddress), nowMs);
    allowance.rows++;
    return allowance.rows <= ROWS_PER_MINUTE;
  }

  private allowanceOf(network: string, nowMs: number): Allowance {
    const known = this.allowances.get(network);
    if (known && known.endsAtMs > nowMs) return known;
    if (!known && network !== EVERYBODY_ELSE && this.allowances.size >= MAX_ADDRESSES) {
      return this.allowanceOf(EVERYBODY_ELSE, nowMs);
    }
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
