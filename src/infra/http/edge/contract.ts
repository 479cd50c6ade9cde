import type { IncomingHttpHeaders } from 'node:http';
import type { AppError, ErrorCode } from '../../../common/errors/index.js';
import type { JsonLimits } from '../../../common/json-shape.js';
import type { Span, Tracer } from '../../tracing/index.js';
import type { SocketLimits } from '../socket-limits.js';

/** `Cache-Control` of every answer but the catalogue's (D46). */
export const NO_STORE = 'no-store';

/** Bodies, chunked ones too (D9). */
export const MAX_BODY_BYTES = 65_536;
export const MAX_URL_LENGTH = 4096;
/** Request line and header lines together, else 431. */
export const MAX_HEADER_BYTES = 16_384;
/** The largest body is a price list, with 962 names and 240 elements (D9). Validating 1,000 objects would take 30 ms. */
export const JSON_LIMITS: JsonLimits = { depth: 32, names: 1_000, elements: 256 };

export const DEFAULT_REQUEST_TIMEOUT_MS = 10_000;
export const DEFAULT_CLOSE_LIMIT_MS = 10_000;
/** Longer than the usual 60 s of a proxy in front, so that the proxy is the one that hangs up. */
export const KEEP_ALIVE_TIMEOUT_MS = 65_000;
/** How often Node looks for requests that take too long. */
export const TIMEOUT_CHECK_INTERVAL_MS = 500;

/** What is still taken from a caller whose request was refused unread, so that it can read why. */
export const LINGER_MS = 1000;
export const LINGER_BYTES = 1_048_576;

/** What an authenticator sees of a call: its head only, nothing of the body (D7). */
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

/** What an authenticator decided about one call. */
export interface AuthResult {
  readonly principal: unknown;
  /** Rate-limit headers and the like, set on every response of this call (D21). */
  readonly headers: Readonly<Record<string, string>>;
  /** 401, 403, 429 or 503: ends the call. */
  readonly refusal: AppError | null;
  /** For the call log (D38), known or not. */
  readonly keyId: string | null;
  readonly partnerId: string | null;
  readonly mode: string | null;
  /** Whose lists and writes are bounded together (D43), where the call log names no partner. */
  readonly slotOwner?: string;
}

/** Authenticates and limits a call before anything else is looked at (D7). */
export interface Authenticator {
  authenticate(call: EdgeCall): Promise<AuthResult>;
}

/** One finished (or abandoned) call, for the log line and the row of D38. */
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
  /** 499: the client was gone before the response. */
  readonly status: number;
  readonly latencyMs: number;
  readonly keyId: string | null;
  readonly partnerId: string | null;
  readonly mode: string | null;
  readonly remoteAddress: string;
  readonly replayOf: string | null;
  readonly finishedAt: Date;
  readonly errorCode: ErrorCode | null;
  /** Of the call's span; null when nothing is traced. */
  readonly traceId: string | null;
}

/** Takes every response of the port exactly once. It must not throw and must not wait. */
export interface CallRecorder {
  record(call: FinishedCall): void;
}

/** What the app behind the edge does for it. */
export interface EdgeServices {
  readonly authenticator: Authenticator;
  readonly recorder: CallRecorder;
}

export interface EdgeOptions {
  /** Asked at every call and not before: the app that makes them is built on top of the edge. */
  services(): EdgeServices;
  /** `TRUST_PROXY`: how many proxies in front append to `X-Forwarded-For` (D15). */
  readonly trustProxyHops: number;
  /** Partner port true; admin port false, where a key that is sent must still be valid. */
  readonly idempotencyKeyRequired: boolean;
  /** Admin port only: exact GET paths that are not authenticated and are not recorded (`/livez`). */
  readonly anonymousPaths?: readonly string[];
  /** Where the port listens. At a loopback address, anonymous paths take no `Host` but that of this machine (D3). */
  readonly listensAt?: string;
  /** Portal only: other GET paths that are not authenticated and not recorded, by the path without the query. */
  readonly isPublicPath?: (path: string) => boolean;
  /** How long a whole request may take to arrive, else 408. Default 10 s. */
  readonly requestTimeoutMs?: number;
  /** Default: `DEFAULT_SOCKET_LIMITS`. */
  readonly socketLimits?: SocketLimits;
  /** Makes a span of every call that is recorded; null or left out: of none. */
  readonly tracer?: Tracer | null;
  /** Whether log lines of a handler name its call; those of a traced one do anyway. */
  readonly namesCalls?: boolean;
  /** Asked when the port closes: for how long calls may still be answered, in milliseconds. Default 10 s. */
  closeWithinMs?(): number;
  onUnexpectedError(error: unknown, requestId: string): void;
}

declare module 'fastify' {
  interface FastifyRequest {
    /** Who is calling, as the authenticator said; null before that and on anonymous paths. */
    principal: unknown;
    /** `performance.now()` when the head of the call had arrived. */
    startedAtMs: number;
    /** The id of the first call when this one got its stored response (D18). */
    replayOf: string | null;
    authResult: AuthResult | null;
    /** The code of the response's error body, for the call log. Whoever writes such a body sets it. */
    errorCode: ErrorCode | null;
    /** Null when the call is not traced. */
    span: Span | null;
  }
}
