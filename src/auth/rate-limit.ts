/** A bucket after a charge, in microseconds of the clock that holds the bucket. */
export interface BucketState {
  /** Number of calls of this charge that got a token. */
  readonly granted: number;
  /** Time at which the bucket is full again. */
  readonly tatUs: number;
  readonly nowUs: number;
}

export interface RateLimitShape {
  readonly burst: number;
  readonly microsecondsPerToken: number;
}

export interface RateLimitResult {
  readonly allowed: boolean;
  readonly headers: Readonly<Record<string, string>>;
}

const MICROSECONDS = 1_000_000;

/** Converts `RATE_LIMIT_PER_MINUTE` and `RATE_LIMIT_BURST` to GCRA's terms (spec section 8, D21). */
export function toRateLimitShape(limit: { perMinute: number; burst: number }): RateLimitShape {
  return { burst: limit.burst, microsecondsPerToken: Math.round((60 * MICROSECONDS) / limit.perMinute) };
}

/**
 * Result of the `nth` call (from 0) of one charge. Calls are granted in their order of arrival, so an earlier call sees
 * more remaining tokens than the last one.
 */
export function toRateLimitResult(state: BucketState, nth: number, shape: RateLimitShape): RateLimitResult {
  const { burst, microsecondsPerToken: t } = shape;
  const aheadUs = Math.max(0, state.tatUs - state.nowUs);
  const leftAfterCharge = Math.max(0, Math.floor((burst * t - aheadUs) / t));
  const allowed = nth < state.granted;
  const remaining = allowed ? Math.min(burst, leftAfterCharge + state.granted - 1 - nth) : 0;
  const headers: Record<string, string> = {
    'x-ratelimit-limit': String(burst),
    'x-ratelimit-remaining': String(remaining),
    'x-ratelimit-reset': String(Math.ceil(Math.max(state.tatUs, state.nowUs) / MICROSECONDS)),
  };
  if (!allowed) {
    // Every refused call gets the same value: the time until the next token.
    const waitUs = aheadUs + t - burst * t;
    headers['retry-after'] = String(Math.max(1, Math.ceil(waitUs / MICROSECONDS)));
  }
  return { allowed, headers };
}
