import type { IncomingHttpHeaders } from 'node:http';
import type { AppError, ErrorCode } from '../../../common/errors/index.js';

/** What the gate sees of a call: its head only, nothing of the body (D7). */
export interface EdgeCall {
  readonly requestId: string;
  readonly method: string;
  /** The request target as it was sent. */
  readonly url: string;
  readonly headers: IncomingHttpHeaders;
  /** Names and values in turn, unmerged: a second `Authorization` line is visible here only (D12). */
  readonly rawHeaders: readonly string[];
  /** The caller's IP address after `TRUST_PROXY` hops (D15); empty when the socket is already gone. */
  readonly remoteAddress: string;
}

/** What the gate decided about one call. */
export interface Admission {
  readonly principal: unknown;
  /** Rate-limit headers and the like, set on every answer of this call (D21). */
  readonly headers: Readonly<Record<string, string>>;
  /** 401, 403, 429 or 503: ends the call. */
  readonly refusal: AppError | null;
  /** For the call log (D38), known or not. */
  readonly keyId: string | null;
  readonly partnerId: string | null;
  readonly mode: string | null;
}

/** Authenticates and limits a call before anything else is looked at (D7). */
export interface EdgeGate {
  admit(call: EdgeCall): Promise<Admission>;
}

/** One answered (or abandoned) call, for the log line and the row of D38. */
export interface FinishedCall {
  readonly requestId: string;
  /** The client's own `X-Request-Id`, if it matches `^[\w.-]{1,64}$`; logged, never adopted (D8). */
  readonly clientRequestId: string | null;
  /** `-` when the request could not be read. */
  readonly method: string;
  /** The pattern, such as `/v1/orders/:id`. */
  readonly route: string | null;
  /** Without the query; `-` when the request could not be read. */
  readonly path: string;
  /** 499: the client was gone before the answer. */
  readonly status: number;
  readonly latencyMs: number;
  readonly keyId: string | null;
  readonly partnerId: string | null;
  readonly mode: string | null;
  readonly remoteAddress: string;
  readonly replayOf: string | null;
  readonly finishedAt: Date;
  readonly errorCode: ErrorCode | null;
}

/** Takes every answer of the port exactly once. It must not throw and must not wait. */
export interface CallRecorder {
  record(call: FinishedCall): void;
}

export interface EdgeOptions {
  readonly gate: EdgeGate;
  readonly recorder: CallRecorder;
  /** `TRUST_PROXY`: how many proxies in front append to `X-Forwarded-For` (D15). */
  readonly trustProxyHops: number;
  /** Partner port true; admin port false, where a key that is sent must still be valid. */
  readonly idempotencyKeyRequired: boolean;
  /** Admin port only: exact GET paths that skip the gate and are not recorded (`/livez`). */
  readonly anonymousPaths?: readonly string[];
  /** How long a whole request may take to arrive, else 408. Default 10 s. */
  readonly requestTimeoutMs?: number;
  onUnexpectedError(error: unknown, requestId: string): void;
}

declare module 'fastify' {
  interface FastifyRequest {
    /** What the gate said the caller is; null before admission and on anonymous paths. */
    principal: unknown;
    /** `performance.now()` when the head of the call had arrived. */
    startedAtMs: number;
    /** The id of the first call when this one was answered from its stored response (D18). */
    replayOf: string | null;
    admission: Admission | null;
    /** The code of the answer's error body, for the call log. Whoever writes such a body sets it. */
    errorCode: ErrorCode | null;
  }
}
