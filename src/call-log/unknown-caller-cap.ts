import { isIPv6 } from 'node:net';

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
    const allowance = this.allowanceOf(networkOf(remoteAddress), nowMs);
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

/** An IPv6 caller has a whole /64 to choose addresses from. Mapped IPv4 is IPv4. */
export function networkOf(address: string): string {
  const plain = address.startsWith('::ffff:') ? address.slice(7) : address;
  if (!isIPv6(plain)) return plain;
  const [head = '', tail] = plain.split('::');
  const groups = head === '' ? [] : head.split(':');
  const after = tail === undefined || tail === '' ? [] : tail.split(':');
  const missing = tail === undefined ? 0 : Math.max(0, 8 - groups.length - after.length);
  const all = [...groups, ...Array<string>(missing).fill('0'), ...after];
  return all
    .slice(0, 4)
    .map((group) => parseInt(group, 16).toString(16))
    .join(':');
}
