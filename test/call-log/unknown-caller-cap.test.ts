import { describe, expect, it } from 'vitest';
import { UnknownCallerCap } from '../../src/call-log/row-caps.js';

function admitted(cap: UnknownCallerCap, calls: number, address: (nth: number) => string, nowMs = 0): number {
  return Array.from({ length: calls }, (_, nth) => cap.admits(address(nth), nowMs)).filter(Boolean).length;
}

describe('cap of rows without a known key', () => {
  it('lets 60 rows a minute through for each address', () => {
    const cap = new UnknownCallerCap();
    expect(admitted(cap, 100, () => '203.0.113.7')).toBe(60);
    expect(admitted(cap, 100, () => '203.0.113.8')).toBe(60);
  });

  it('lets 60 more through after a minute', () => {
    const cap = new UnknownCallerCap();
    expect(admitted(cap, 100, () => '203.0.113.7', 0)).toBe(60);
    expect(admitted(cap, 100, () => '203.0.113.7', 59_999)).toBe(0);
    expect(admitted(cap, 100, () => '203.0.113.7', 60_000)).toBe(60);
  });

  it('takes a whole IPv6 /64 for one address', () => {
    const cap = new UnknownCallerCap();
    expect(admitted(cap, 200, (nth) => `2001:db8:0:1::${nth.toString(16)}`)).toBe(60);
    expect(admitted(cap, 200, (nth) => `2001:db8:0:2::${nth.toString(16)}`)).toBe(60);
  });

  it('gives what is beyond 10,000 addresses one common allowance, and forgets after a minute', () => {
    const cap = new UnknownCallerCap();
    expect(admitted(cap, 10_000, (nth) => `client ${nth}`)).toBe(10_000);
    expect(admitted(cap, 1_000, (nth) => `other ${nth}`)).toBe(60);
    expect(admitted(cap, 1_000, (nth) => `other ${nth}`, 60_000)).toBe(1_000);
  });
});
