import { callerNetwork } from '../infra/network/ip-address.js';

const ROWS_PER_MINUTE = 60;
const MINUTE_MS = 60_000;
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
