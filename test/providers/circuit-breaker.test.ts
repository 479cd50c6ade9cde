import { describe, expect, it } from 'vitest';
import { CircuitBreaker } from '../../src/providers/http/index.js';

describe('the circuit breaker', () => {
  function setUp() {
    let nowMs = 0;
    const breaker = new CircuitBreaker({ failuresToOpen: 3, openMs: 1_000, nowMs: () => nowMs });
    return {
      breaker,
      pass: (ms: number) => void (nowMs += ms),
      fail: (times: number) => {
        for (let i = 0; i < times; i++) breaker.admit()!.failed();
      },
    };
  }

  it('opens after consecutive failures, but not if a success occurs between them', () => {
    const { breaker, fail } = setUp();
    fail(2);
    breaker.admit()!.succeeded();
    fail(2);
    expect(breaker.state).toBe('closed');
    fail(1);
    expect(breaker.state).toBe('open');
    expect(breaker.admit()).toBeNull();
    expect(breaker.retryAfterMs).toBe(1_000);
  });

  it('lets exactly one probe through after the open time, and closes if it succeeds', () => {
    const { breaker, fail, pass } = setUp();
    fail(3);
    pass(999);
    expect(breaker.admit()).toBeNull();
    pass(1);
    expect(breaker.state).toBe('half_open');
    const probe = breaker.admit()!;
    expect(breaker.admit()).toBeNull();
    probe.succeeded();
    expect(breaker.state).toBe('closed');
    expect(breaker.admit()).not.toBeNull();
  });

  it('opens for the full time again when the probe fails', () => {
    const { breaker, fail, pass } = setUp();
    fail(3);
    pass(1_000);
    breaker.admit()!.failed();
    expect(breaker.state).toBe('open');
    expect(breaker.retryAfterMs).toBe(1_000);
  });

  it('gives the probe to another call when the first one was never sent', () => {
    const { breaker, fail, pass } = setUp();
    fail(3);
    pass(1_000);
    breaker.admit()!.released();
    expect(breaker.admit()).not.toBeNull();
  });

  it('ignores calls from before it opened, and a second outcome of one call', () => {
    const { breaker, fail, pass } = setUp();
    const early = breaker.admit()!;
    const twice = breaker.admit()!;
    twice.failed();
    twice.failed();
    twice.failed();
    expect(breaker.state).toBe('closed');
    fail(2);
    expect(breaker.state).toBe('open');
    early.succeeded();
    expect(breaker.state).toBe('open');
    pass(1_000);
    breaker.admit()!.succeeded();
    expect(breaker.state).toBe('closed');
  });
});
