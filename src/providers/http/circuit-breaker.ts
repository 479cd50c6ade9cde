export type CircuitState = 'closed' | 'open' | 'half_open';

export interface CircuitBreakerOptions {
  /** Consecutive failures that open the circuit. */
  readonly failuresToOpen?: number;
  readonly openMs?: number;
  /** A monotonic clock in milliseconds. */
  readonly nowMs?: () => number;
}

/** Permission for one call. Only the first of its methods to be called has an effect. */
export interface CircuitPermit {
  /** The provider responded, whatever the result. */
  succeeded(): void;
  /** Network failure, 5xx, timeout or an unreadable response. */
  failed(): void;
  /** The call was not sent, so it proves nothing. */
  released(): void;
}

const FAILURES_TO_OPEN = 5;
const OPEN_MS = 10_000;

/**
 * Stops calls to a provider that keeps failing. The circuit stays open for `openMs`, then exactly one probe goes
 * through. Its success closes the circuit; its failure opens it again.
 */
export class CircuitBreaker {
  private readonly failuresToOpen: number;
  private readonly openMs: number;
  private readonly nowMs: () => number;
  private failures = 0;
  private openedAtMs: number | null = null;
  private probing = false;
  /** Counts state changes, so that a call from before a change does not decide after it. */
  private generation = 0;

  constructor(options: CircuitBreakerOptions = {}) {
    this.failuresToOpen = options.failuresToOpen ?? FAILURES_TO_OPEN;
    this.openMs = options.openMs ?? OPEN_MS;
    this.nowMs = options.nowMs ?? (() => performance.now());
  }

  get state(): CircuitState {
    if (this.openedAtMs === null) return 'closed';
    return this.nowMs() - this.openedAtMs < this.openMs ? 'open' : 'half_open';
  }

  /** Milliseconds until the next call is allowed; 0 when one is allowed now. */
  get retryAfterMs(): number {
    if (this.openedAtMs === null) return 0;
    return Math.max(0, Math.ceil(this.openedAtMs + this.openMs - this.nowMs()));
  }

  /** Null when no call is allowed: the circuit is open, or its probe is in flight. */
  admit(): CircuitPermit | null {
    const state = this.state;
    if (state === 'open' || (state === 'half_open' && this.probing)) return null;
    if (state === 'half_open') this.probing = true;
    return this.permit();
  }

  private permit(): CircuitPermit {
    const generation = this.generation;
    let settled = false;
    const once = (record: () => void) => () => {
      if (settled) return;
      settled = true;
      if (generation === this.generation) record();
    };
    return {
      succeeded: once(() => this.close()),
      failed: once(() => this.countFailure()),
      released: once(() => (this.probing = false)),
    };
  }

  private close(): void {
    this.failures = 0;
    if (this.openedAtMs === null) return;
    this.openedAtMs = null;
    this.probing = false;
    this.generation++;
  }

  private countFailure(): void {
    this.failures++;
    if (this.openedAtMs === null && this.failures < this.failuresToOpen) return;
    this.openedAtMs = this.nowMs();
    this.probing = false;
    this.generation++;
  }
}
