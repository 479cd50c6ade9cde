import type { ClientRequest } from 'node:http';
import type { AttemptOutcome, AttemptPhase } from '../delivery.js';
import type { DeliveryState } from '../delivery-rules.js';
import { NameNotResolved, TargetRefused } from './vetted-lookup.js';

/** Result of one attempt before it is recorded. */
export interface AttemptResult {
  readonly outcome: AttemptOutcome;
  readonly statusCode: number | null;
  /** Time from the start to the event that decides the outcome: final status line, error, or interruption. */
  readonly latencyMs: number;
  /** Failure class and code, such as `tls: CERT_HAS_EXPIRED`; never an address or a body. */
  readonly error: string | null;
  /** Null when unmeasured, because the process died. */
  readonly phases: AttemptPhases | null;
  /** Whether the request used a connection left open by an earlier attempt. */
  readonly reusedConnection: boolean;
  /** The stored response headers (see `keptHeaders`); null without a response. */
  readonly responseHeaders: Readonly<Record<string, string>> | null;
  readonly responseBody: string | null;
  /** Monotonic milliseconds (`performance.now()`): the retry schedule counts from here (D30). */
  readonly endedAt: number;
}

/**
 * Timing of an attempt's phases in milliseconds. The first three are durations. They are null when the phase was not
 * reached or the connection already existed, and end at the failure or interruption. The others count from the start of
 * the attempt.
 */
export interface AttemptPhases {
  readonly dnsMs: number | null;
  readonly connectMs: number | null;
  readonly tlsMs: number | null;
  /** First byte of any response, including 1xx. */
  readonly firstByteMs: number | null;
  /** Until the response body was read, capped or cut, or the attempt failed. */
  readonly totalMs: number;
}

/** An attempt with its delivery's state before it. */
export interface FinishedAttempt extends AttemptResult, DeliveryState {
  readonly deliveryId: string;
  readonly endpointId: string;
  /** Fence of the endpoint's lease under which the attempt began. */
  readonly fence: string;
  /** The sent headers without signatures; null when unknown. */
  readonly requestHeaders: Readonly<Record<string, string>> | null;
  /** For the log: the event's order and the attempt's trace. */
  readonly orderId: string | null;
  readonly traceId: string | null;
}

type Phase = Exclude<AttemptPhase, 'waiting'>;

/**
 * Measures one attempt. A phase in which the attempt fails or is interrupted ends there. A phase that was not reached
 * has no time. If a phase repeats, its last time counts.
 */
export class PhaseClock {
  /** Monotonic milliseconds. */
  readonly startedAt = performance.now();
  private readonly took: Record<Phase, number | null> = { dns: null, connect: null, tls: null };
  private running: Phase | null = null;
  private since = this.startedAt;
  private firstByteMs: number | null = null;
  private reused = false;

  /** Whether the request used a connection left open by an earlier one. */
  get reusedConnection(): boolean {
    return this.reused;
  }

  get phase(): AttemptPhase {
    return this.running ?? 'waiting';
  }

  get hasFirstByte(): boolean {
    return this.firstByteMs !== null;
  }

  /** Call in the turn that created the request: the socket's events may arrive in the next one. */
  watch(request: ClientRequest): void {
    request.once('socket', (socket) => {
      this.reused = request.reusedSocket;
      const onData = (): void => void (this.firstByteMs = this.elapsedMs());
      // Runs before Node's own listener, which emits the response.
      socket.prependOnceListener('data', onData);
      request.once('close', () => socket.off('data', onData));
    });
  }

  /** Ends the current phase and begins the next. */
  enter(next: Phase | null, at = performance.now()): void {
    if (this.running) this.took[this.running] = at - this.since;
    this.running = next;
    this.since = at;
  }

  /** Ends the current phase. @param endedAt monotonic milliseconds */
  stop(endedAt: number): AttemptPhases {
    this.enter(null, endedAt);
    const { dns: dnsMs, connect: connectMs, tls: tlsMs } = this.took;
    return { dnsMs, connectMs, tlsMs, firstByteMs: this.firstByteMs, totalMs: endedAt - this.startedAt };
  }

  private elapsedMs(): number {
    return performance.now() - this.startedAt;
  }
}

/** Failure class in the delivery log; `http_status` is a response other than 2xx. */
export type FailureClass =
  'dns' | 'connect' | 'tls' | 'timeout' | 'target_refused' | 'http_status' | 'protocol';

const CONNECT_CODES = new Set([
  'ECONNREFUSED',
  'ECONNRESET',
  'ECONNABORTED',
  'EPIPE',
  'EHOSTUNREACH',
  'EHOSTDOWN',
  'ENETUNREACH',
  'ENETDOWN',
  'ETIMEDOUT',
  'EADDRNOTAVAIL',
  'EACCES',
  'EPERM',
  'EMFILE',
  'ENFILE',
]);
const TLS_CODE =
  /^(ERR_(TLS|SSL|OSSL|CRYPTO)_|TLS_|EPROTO$|CERT_|CRL_|UNABLE_TO_|DEPTH_ZERO_|SELF_SIGNED_|HOSTNAME_MISMATCH|INVALID_(CA|PURPOSE)|PATH_LENGTH_)/;

/**
 * `class: CODE` of an error for the log that partners see. Never the message, which may contain an internal address.
 */
export function describeFailure(error: unknown): string {
  if (error instanceof TargetRefused) return 'target_refused';
  if (error instanceof NameNotResolved) return `dns: ${error.code}`;
  const code = codeOf(error);
  return code === null ? 'protocol' : `${classOf(code)}: ${code}`;
}

function classOf(code: string): FailureClass {
  if (CONNECT_CODES.has(code)) return 'connect';
  return TLS_CODE.test(code) ? 'tls' : 'protocol';
}

function codeOf(error: unknown): string | null {
  const code = (error as { code?: unknown } | null)?.code;
  return typeof code === 'string' && /^[A-Z][A-Z0-9_]{1,60}$/.test(code) ? code : null;
}

export const MAX_KEPT_HEADERS = 50;
export const MAX_HEADER_VALUE_BYTES = 1_024;
export const MAX_KEPT_HEADERS_BYTES = 8 * 1_024;
export const REDACTED = '[redacted]';

/** Headers whose values may grant access: the log keeps only the names. */
const SECRET_NAME = /cookie|authori[sz]ation|authentication-info|token|secret|session|password|jwt|key/;

/**
 * Response headers for the log: lower-case names, repeated ones joined, values as safe text, secrets redacted. Headers
 * beyond the caps are omitted. The caps count bytes as received, and UTF-8 bytes for the total.
 * @param rawHeaders name, value, name, value, as Node provides them (Latin-1)
 */
export function keptHeaders(rawHeaders: readonly string[]): Readonly<Record<string, string>> {
  const kept = new Map<string, string>();
  for (const [name, value] of joined(rawHeaders)) {
    if (kept.size === MAX_KEPT_HEADERS) break;
    kept.set(name, SECRET_NAME.test(name) ? REDACTED : safeValue(value));
  }
  // `fromEntries` treats a header named `__proto__` as a plain key.
  return Object.fromEntries(withinTotal(kept));
}

function joined(rawHeaders: readonly string[]): Map<string, string> {
  const values = new Map<string, string>();
  for (let i = 0; i + 1 < rawHeaders.length; i += 2) {
    const name = rawHeaders[i]!.toLowerCase();
    const before = values.get(name);
    values.set(name, before === undefined ? rawHeaders[i + 1]! : `${before}, ${rawHeaders[i + 1]!}`);
  }
  return values;
}

function safeValue(latin1: string): string {
  const bytes = Buffer.from(latin1, 'latin1');
  return toSafeText(bytes.subarray(0, MAX_HEADER_VALUE_BYTES), bytes.length > MAX_HEADER_VALUE_BYTES);
}

function withinTotal(headers: ReadonlyMap<string, string>): [string, string][] {
  let size = 0;
  return [...headers].filter(([name, value]) => {
    const cost = Buffer.byteLength(name) + Buffer.byteLength(value);
    if (size + cost > MAX_KEPT_HEADERS_BYTES) return false;
    size += cost;
    return true;
  });
}

/**
 * Converts foreign bytes to text that PostgreSQL accepts: invalid UTF-8 becomes U+FFFD, NUL is removed. A character cut
 * in two by the cap is dropped.
 */
export function toSafeText(bytes: Buffer, wasCut: boolean): string {
  const text = new TextDecoder('utf-8', { ignoreBOM: true }).decode(bytes, { stream: wasCut });
  return text.replaceAll('\0', '');
}
