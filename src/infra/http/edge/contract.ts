import type { IncomingHttpHeaders } from 'node:http';
import type { FastifyRequest } from 'fastify';
import type { AppError, ErrorCode } from '../../../common/errors/index.js';
import type { JsonLimits } from '../../../common/json-shape.js';
import type { Span, Tracer } from '../../tracing/index.js';
import type { SocketLimits } from '../socket-limits.js';

/** `Cache-Control` of every response except the catalog's (D46). */
export const NO_STORE = 'no-store';

/** Maximum body size, including chunked bodies (D9). */
export const MAX_BODY_BYTES = 65_536;
export const MAX_URL_LENGTH = 4096;
/** Maximum size of request line and header lines together; beyond it 431. */
export const MAX_HEADER_BYTES = 16_384;
/**
 * The largest valid body is a price list with 962 names and 240 elements. Validating 1,000 objects would take 30
 * ms.
 */
export const JSON_LIMITS: JsonLimits = { depth: 32, names: 1_000, elements: 256 };

export const DEFAULT_REQUEST_TIMEOUT_MS = 10_000;
export const DEFAULT_CLOSE_LIMIT_MS = 10_000;
/** Longer than the usual 60 s of a proxy, so that the proxy hangs up first. */
export const KEEP_ALIVE_TIMEOUT_MS = 65_000;
/** Interval at which Node checks for slow requests. */
export const TIMEOUT_CHECK_INTERVAL_MS = 500;

/** Limits for draining a refused request, so that its caller can read the refusal. */
export const LINGER_MS = 1000;
export const LINGER_BYTES = 1_048_576;

/** The part of a call that authenticators see: its head, nothing of the body (D7). */
export interface EdgeCall {
  readonly requestId: string;
  readonly method: string;
  /** The request target as sent. */
  readonly url: string;
  readonly headers: IncomingHttpHeaders;
  /** Alternating names and values, unmerged. A second `Authorization` line is visible only here (D12). */
  readonly rawHeaders: readonly string[];
  /** The caller's IP address after `TRUST_PROXY` hops (D15); empty when the socket is already gone. */
  readonly remoteAddress: string;
}

/** An authenticator's decision on one call. */
export interface AuthResult {
  readonly principal: unknown;
  /** Rate-limit and similar headers, set on every response of this call (D21). */
  readonly headers: Readonly<Record<string, string>>;
  /** Ends the call with 401, 403, 429 or 503. */
  readonly refusal: AppError | null;
  /** For the call log (D38); also set if the call of a known key is refused. */
  readonly keyId: string | null;
  readonly partnerId: string | null;
  readonly mode: string | null;
  /** Owner whose lists and writes are limited together (D43), if the call log names no partner. */
  readonly slotOwner?: string;
}

/** Authenticates and limits a call before anything else is examined. */
export interface Authenticator {
  authenticate(call: EdgeCall): Promise<AuthResult>;
}

/** One finished or abandoned call, for the log line and row of D38. */
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
  /** 499: the client disconnected before the response. */
  readonly status: number;
  readonly latencyMs: number;
  readonly keyId: string | null;
  readonly partnerId: string | null;
  readonly mode: string | null;
  readonly remoteAddress: string;
  readonly replayOf: string | null;
  readonly finishedAt: Date;
  readonly errorCode: ErrorCode | null;
  /** Trace of the call's span; null when nothing is traced. */
  readonly traceId: string | null;
}

/** Receives every response of the port exactly once. It must neither throw nor wait. */
export interface CallRecorder {
  record(call: FinishedCall): void;
}

/** Services of the app behind the edge. */
export interface EdgeServices {
  readonly authenticator: Authenticator;
  readonly recorder: CallRecorder;
}

/** An error as a page, with all headers except the error's own. */
export interface ErrorPage {
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
}

export type RenderErrorPage = (error: AppError, request: FastifyRequest) => ErrorPage;

export interface EdgeOptions {
  /** Called at each request, because the app that creates the services is built on top of the edge. */
  services(): EdgeServices;
  /** `TRUST_PROXY`: number of proxies that append to `X-Forwarded-For`. */
  readonly trustProxyHops: number;
  /** True on the partner port. False on the admin port, where a sent key must still be valid. Null: never checked. */
  readonly idempotencyKeyRequired: boolean | null;
  /** Admin port only: exact GET paths that are neither authenticated nor recorded (`/livez`). */
  readonly anonymousPaths?: readonly string[];
  /** Listening address. On a loopback address, anonymous paths accept only a `Host` of this machine (D3). */
  readonly listensAt?: string;
  /** Portal only: further GET paths that are neither authenticated nor recorded, by path without query. */
  readonly isPublicPath?: (path: string) => boolean;
  /** Format of request bodies: JSON, or the fields of an HTML form. Default JSON. */
  readonly bodies?: 'json' | 'form';
  /** Renders refusals and errors for people; default: the one error body (D6). */
  readonly errorPage?: RenderErrorPage;
  /** Time limit for a whole request to arrive; beyond it 408. Default 10 s. */
  readonly requestTimeoutMs?: number;
  /** Default: `DEFAULT_SOCKET_LIMITS`. */
  readonly socketLimits?: SocketLimits;
  /** Creates a span for every recorded call; none when null or omitted. */
  readonly tracer?: Tracer | null;
  /** Whether a handler's log lines name its call; those of a traced call always do. */
  readonly namesCalls?: boolean;
  /** Called when the port closes: the milliseconds in which running calls may still finish. Default 10 s. */
  closeWithinMs?(): number;
  onUnexpectedError(error: unknown, requestId: string): void;
}

declare module 'fastify' {
  interface FastifyInstance {
    /** Null: the port sends the one error body. */
    errorPage: RenderErrorPage | null;
  }

  interface FastifyRequest {
    /** The authenticated caller; null before authentication and on anonymous paths. */
    principal: unknown;
    /** `performance.now()` when the head of the call had arrived. */
    startedAtMs: number;
    /** The first call's id if this one got its stored response (D18). */
    replayOf: string | null;
    authResult: AuthResult | null;
    /** Code of the response's error body, for the call log. Set by the code that writes such a body. */
    errorCode: ErrorCode | null;
    /** Null when the call is not traced. */
    span: Span | null;
  }
}
