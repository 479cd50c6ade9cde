import type { AttemptOutcome } from '../delivery.js';

/** What one attempt came to, before it is recorded. */
export interface AttemptResult {
  readonly outcome: AttemptOutcome;
  readonly statusCode: number | null;
  /** From the start to the verdict: the final status line, the error, or the cut. */
  readonly latencyMs: number;
  /** The class of the failure and its code, such as `tls: CERT_HAS_EXPIRED`; never an address or a body. */
  readonly error: string | null;
  readonly phases: AttemptPhases | null;
  readonly responseBody: string | null;
  /** Monotonic milliseconds (`performance.now()`): the retry schedule counts from here (D30). */
  readonly endedAt: number;
}

/** Milliseconds from the start of the attempt. */
export interface AttemptPhases {
  readonly firstByteMs: number;
  /** Until the response body was read, capped, or cut by the deadline. */
  readonly totalMs: number;
}

export interface FinishedAttempt extends AttemptResult {
  readonly deliveryId: string;
  readonly endpointId: string;
  readonly fence: string;
  /** Attempts before this one that count (D30). */
  readonly countedAttempts: number;
}
