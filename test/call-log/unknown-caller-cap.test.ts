import { describe, expect, it } from 'vitest';
import { UnknownCallerCap } from '../../src/call-log/row-caps.js';

function admitted(cap: UnknownCallerCap, calls: number, address: (nth: number) => string, nowMs = 0): number {
  return Array.from({ length: calls }, (_, nth) => cap.admits(address(nth), nowMs)).filter(Boolean).length;
}

describe('the cap on rows without a known key', () => {
  it('allows 60 rows a minute for each address', () => {
    const cap = new UnknownCallerCap();
    expect(admitted(cap, 100, () => '203.0.113.7')).toBe(60);
    expect(admitted(cap, 100, () => '203.0.113.8')).toBe(60);
  });

  it('allows 60 more after a minute', () => {
    const cap = new UnknownCallerCap();
    expect(admitted(cap, 100, () => '203.0.113.7', 0)).toBe(60);
    expect(admitted(cap, 100, () => '203.0.113.7', 59_999)).toBe(0);
    expect(admitted(cap, 100, () => '203.0.113.7', 60_000)).toBe(60);
  });

  it('counts an IPv6 /64 as one address', () => {
    const cap = new UnknownCallerCap();
    expect(admitted(cap, 200, (nth) => `2001:db8:0:1::${nth.toString(16)}`)).toBe(60);
    expect(admitted(cap, 200, (nth) => `2001:db8:0:2::${nth.toString(16)}`)).toBe(60);
  });

  it('allows 600 a minute across all addresses, however many there are (D45)', () => {
    const cap = new UnknownCallerCap();
    const rotating = (nth: number) => `2001:db8:0:${nth.toString(16)}::1`;
    expect(admitted(cap, 5_000, rotating)).toBe(600);
    expect(admitted(cap, 5_000, () => '203.0.113.7', 59_999)).toBe(0);
    expect(admitted(cap, 60, () => '203.0.113.7', 60_000)).toBe(60);
    expect(admitted(cap, 5_000, rotating, 60_000)).toBe(540);
  });

  it('counts no call of an address that is already over its own limit', () => {
    const cap = new UnknownCallerCap();
    expect(admitted(cap, 5_000, () => '203.0.113.7')).toBe(60);
    expect(admitted(cap, 5_000, (nth) => `2001:db8:0:${nth.toString(16)}::1`)).toBe(540);
  });
});
