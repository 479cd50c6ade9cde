import type { AttemptOutcome } from '../delivery.js';

/** What one attempt came to, before it is recorded. */
export interface AttemptResult {
  readonly outcome: AttemptOutcome;
  readonly statusCode: number | null;
  /** From the start to the verdict: the final status line, the error, or the cut. */
  readonly latencyMs: number;
  /** The class of the failure and its code, such as `tls: CERT_HAS_EXPIRED`; never an address or a body. */
  readonly error: string | null;
  /** Null when nobody measured: the process died. */
  readonly phases: AttemptPhases | null;
  /** The request went over a connection that an earlier attempt had left open. */
  readonly reusedConnection: boolean;
  /** What is kept of the answer's headers (see `keptHeaders`); null without an answer. */
  readonly responseHeaders: Readonly<Record<string, string>> | null;
  readonly responseBody: string | null;
  /** Monotonic milliseconds (`performance.now()`): the retry schedule counts from here (D30). */
  readonly endedAt: number;
}

/**
 * Where the milliseconds of an attempt went. The first three are durations: null when the phase was not reached or the
 * connection was there already, and until the failure or the cut when it ended the attempt. The others count from the
 * start of the attempt.
 */
export interface AttemptPhases {
  readonly dnsMs: number | null;
  readonly connectMs: number | null;
  readonly tlsMs: number | null;
  /** The first byte of any answer, 1xx included. */
  readonly firstByteMs: number | null;
  /** Until the response body was read, capped or cut, or the attempt failed. */
  readonly totalMs: number;
}

export interface FinishedAttempt extends AttemptResult {
  readonly deliveryId: string;
  readonly endpointId: string;
  readonly fence: string;
  /** Attempts before this one that count (D30). */
  readonly countedAttempts: number;
  /** What was sent, without the signatures; null when nobody knows. */
  readonly requestHeaders: Readonly<Record<string, string>> | null;
}
