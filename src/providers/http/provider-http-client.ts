import { subscribe } from 'node:diagnostics_channel';
import { isIP, type Socket } from 'node:net';
import type { Logger } from 'pino';
import { Agent, buildConnector, type Dispatcher, errors, request as send } from 'undici';
import { deadlineOf, failAfterSendDeadline, isPastDeadline, SendDeadlineExceeded } from '../call-provider.js';
import { ProviderOutcomeUnknown, ProviderUnavailable } from '../esim-provider.js';
import type { CircuitBreaker, CircuitPermit } from './circuit-breaker.js';
import { connectToAny } from '../../infra/network/connect-to-any.js';
import { OUTGOING_TLS } from '../../infra/network/outgoing-tls.js';
import { type ResolveAddresses, systemResolver } from '../../infra/network/resolve-addresses.js';
import { NO_TRACER, type Span, type Tracer } from '../../infra/tracing/index.js';
import type { PlacementPermit } from './placement-guard.js';
import type { ProviderHealthRecorder } from './provider-health.repository.js';
import { outcomeOf, type ProviderMetrics } from './provider-metrics.js';
import type { CallPurpose, ProviderRateLimiter } from './provider-rate-limiter.js';
import { type ReadBody, readJsonBody } from './response-body.js';

export interface ProviderHttpClientOptions {
  readonly provider: string;
  /** May end in a path such as `/v1`; request paths are appended. */
  readonly baseUrl: string;
  /** Time limit of one call, from its wait for a slot to the last byte of the response. */
  readonly timeoutMs: number;
  readonly maxAnswerBytes?: number;
  readonly pace: ProviderRateLimiter;
  readonly breaker: CircuitBreaker;
  readonly logger: Pick<Logger, 'info' | 'warn'>;
  /** Records how calls end; null: not recorded. */
  readonly health?: ProviderHealthRecorder | null;
  /** Counts calls; null: not counted. */
  readonly metrics?: ProviderMetrics | null;
  /** Creates a span per call; without it, no spans. */
  readonly tracer?: Tracer;
  /** Defaults to the operating system's resolver. */
  readonly resolve?: ResolveAddresses;
}

export interface ProviderHttpRequest {
  readonly method: 'GET' | 'POST';
  /** Includes the query but no secrets, because it is logged. */
  readonly path: string;
  /** A function runs just before the call is sent, so that a signature's time does not include the wait for a slot. */
  readonly headers: Readonly<Record<string, string>> | (() => Readonly<Record<string, string>>);
  readonly body?: string;
  readonly purpose: CallPurpose;
  /** Purchases, top-ups and cancellations are sent only with a permit of the `PlacementGuard` (D19). */
  readonly effect: 'none' | PlacementPermit;
  readonly signal: AbortSignal;
  /** Set for long lists; a purchase may not exceed the client's own timeout. */
  readonly timeoutMs?: number;
}

export interface ProviderHttpResponse {
  readonly status: number;
  /** Undefined when the body of a status other than 2xx is not JSON. */
  readonly json: unknown;
}

/** A call's deadline, and the latest time (by `performance.now()`) at which it may begin. */
interface CallLimits {
  readonly signal: AbortSignal;
  readonly sendDeadline: number;
  readonly timeoutMs: number;
}

const MAX_ANSWER_BYTES = 8_388_608;
const RETRY_CONNECTION_MS = 1_000;
const TOO_MANY_REQUESTS = 429;
const DEFAULT_PORTS: Readonly<Record<string, string>> = { 'http:': '80', 'https:': '443' };

/**
 * Calls one provider with its rate limit, circuit breaker, one deadline, no redirects, no proxy and bounded responses.
 * Writes one log line per call, without bodies, headers or secrets.
 */
export class ProviderHttpClient {
  private readonly agent: Agent;
  private readonly baseUrl: string;
  private readonly maxAnswerBytes: number;
  private readonly closing = new AbortController();
  private connectionsMade = 0;

  constructor(private readonly options: ProviderHttpClientOptions) {
    this.baseUrl = options.baseUrl.replace(/\/+$/, '');
    this.maxAnswerBytes = options.maxAnswerBytes ?? MAX_ANSWER_BYTES;
    this.agent = new Agent({
      connect: this.connector(),
      // HTTP/2 may write a request long after it was started, and may resend a refused one.
      allowH2: false,
    });
  }

  /**
   * Sends the request within its slot, its signal's deadline and `timeoutMs`, or not at all, however long the process
   * was frozen while it waited for a slot or connection.
   * @throws ProviderUnavailable when the call certainly had no effect: circuit open, no slot, no connection, too late
   * @throws ProviderOutcomeUnknown when it was sent and the response is missing, cut or late, or a 2xx is not JSON
   */
  async request(request: ProviderHttpRequest): Promise<ProviderHttpResponse> {
    const { provider, tracer = NO_TRACER } = this.options;
    const { method, purpose } = request;
    const attributes = { 'esim.provider': provider, 'esim.purpose': purpose, 'http.request.method': method };
    const span = { name: `${provider} ${purpose}`, kind: 'client', attributes } as const;
    return tracer.inSpan(span, (own) => this.callInSlot(request, own));
  }

  private async callInSlot(request: ProviderHttpRequest, span: Span): Promise<ProviderHttpResponse> {
    const { breaker, provider, pace, metrics } = this.options;
    const timeoutMs = request.timeoutMs ?? this.options.timeoutMs;
    const permit = breaker.admit();
    metrics?.circuit(provider, breaker.state);
    if (!permit) {
      metrics?.called(provider, request.purpose, 'circuit_open', null);
      span.set({ 'esim.outcome': 'circuit_open' });
      throw new ProviderUnavailable(Math.max(breaker.retryAfterMs, RETRY_CONNECTION_MS));
    }
    const slot = this.watchSlot(request.purpose, span);
    const sendDeadline = Math.min(deadlineOf(request.signal), performance.now() + timeoutMs);
    const signal = AbortSignal.any([request.signal, AbortSignal.timeout(timeoutMs)]);
    try {
      const call = { provider, purpose: request.purpose, withinMs: timeoutMs / 2, signal };
      return await pace.inSlot(call, (closesAt) => {
        slot.isGiven();
        if (signal.aborted) throw new ProviderUnavailable(RETRY_CONNECTION_MS);
        // The slot's timer may fire before the deadline's timer, and the signature's time is taken after this line.
        if (isPastDeadline(sendDeadline)) throw new SendDeadlineExceeded();
        return this.exchange(
          request,
          { signal, sendDeadline: Math.min(sendDeadline, closesAt), timeoutMs },
          permit,
          span,
        );
      });
    } finally {
      permit.released();
      slot.end();
      metrics?.circuit(provider, breaker.state);
    }
  }

  /** Measures the wait for a slot, including slots that were missed, and counts calls that got none. */
  private watchSlot(purpose: CallPurpose, span: Span): { isGiven(): void; end(): void } {
    const { provider, metrics } = this.options;
    const askedAt = performance.now();
    let given = false;
    const isGiven = (): void => {
      if (given) return;
      given = true;
      const waitedMs = performance.now() - askedAt;
      metrics?.paced(provider, purpose, waitedMs);
      span.set({ 'esim.wait_ms': Math.round(waitedMs) });
    };
    const end = (): void => {
      if (given) return;
      isGiven();
      metrics?.called(provider, purpose, 'not_paced', null);
      span.set({ 'esim.outcome': 'not_paced' });
    };
    return { isGiven, end };
  }

  /** Closes the keep-alive connections. */
  async close(): Promise<void> {
    this.closing.abort();
    await this.agent.destroy();
  }

  private async exchange(
    request: ProviderHttpRequest,
    limits: CallLimits,
    permit: CircuitPermit,
    span: Span,
  ): Promise<ProviderHttpResponse> {
    const startedAt = performance.now();
    let status: number | null = null;
    let code: string | null = null;
    let hasLeft = true;
    try {
      const answer = await this.sendOnceOrAgain(request, limits);
      status = answer.statusCode;
      if (status === TOO_MANY_REQUESTS) this.options.pace.slowDown();
      const body = await readJsonBody(answer.body, this.maxAnswerBytes);
      code = faultOf(status, body);
      return this.toAnswer(status, body);
    } catch (error) {
      code ??= limits.signal.aborted ? 'timeout' : failureCode(error);
      hasLeft = !(error instanceof SendDeadlineExceeded);
      throw asProviderError(error);
    } finally {
      // A call that was never sent proves nothing about the provider.
      if (hasLeft)
        this.settle(request, permit, span, {
          status,
          code,
          latencyMs: Math.round(performance.now() - startedAt),
        });
    }
  }

  /** Connects to the provider's first address that accepts; the timeout includes TLS. */
  private connector(): buildConnector.connector {
    const { timeoutMs, resolve = systemResolver() } = this.options;
    const secure = buildConnector({ ...OUTGOING_TLS, timeout: timeoutMs, allowH2: false });
    return (options, callback) => {
      this.connectionsMade++;
      const signal = AbortSignal.any([this.closing.signal, AbortSignal.timeout(timeoutMs)]);
      dial(options, resolve, signal).then(
        (socket) => {
          if (options.protocol !== 'https:') return callback(null, socket);
          try {
            secure({ ...options, httpSocket: socket }, callback);
          } catch (error) {
            socket.destroy();
            callback(error as Error, null);
          }
        },
        (error: Error) => callback(signal.aborted ? new errors.ConnectTimeoutError() : error, null),
      );
    };
  }

  /**
   * A provider may close a keep-alive connection while a request is in transit. A read-only request is sent once more
   * at once. A placement never is, because the provider may have read it (D19).
   */
  private async sendOnceOrAgain(
    request: ProviderHttpRequest,
    limits: CallLimits,
  ): Promise<Dispatcher.ResponseData> {
    const { connectionsMade } = this;
    try {
      return await this.send(request, limits);
    } catch (error) {
      const wasReused = this.connectionsMade === connectionsMade;
      if (request.effect !== 'none' || !wasReused || !isCut(error) || limits.signal.aborted) throw error;
      return this.send(request, limits);
    }
  }

  private send(
    request: ProviderHttpRequest,
    { signal, sendDeadline, timeoutMs }: CallLimits,
  ): Promise<Dispatcher.ResponseData> {
    // The call's deadline decides; undici's own timers only have to be later.
    const later = timeoutMs * 2;
    const headers = typeof request.headers === 'function' ? request.headers() : request.headers;
    return send(this.baseUrl + request.path, {
      dispatcher: this.agent.compose(failAfterSendDeadline(sendDeadline)),
      method: request.method,
      headers: { accept: 'application/json', ...headers },
      body: request.body ?? null,
      headersTimeout: later,
      bodyTimeout: later,
      signal,
    });
  }

  private toAnswer(status: number, body: ReadBody): ProviderHttpResponse {
    if (body.kind === 'json') return { status, json: body.json };
    if (status >= 200 && status < 300) throw new ProviderOutcomeUnknown(new Error(`answer is ${body.why}`));
    return { status, json: undefined };
  }

  private settle(
    request: ProviderHttpRequest,
    permit: CircuitPermit,
    span: Span,
    call: { status: number | null; code: string | null; latencyMs: number },
  ): void {
    const { provider, logger, health, metrics } = this.options;
    const { method, path, purpose } = request;
    const outcome = outcomeOf(call.status, call.code);
    metrics?.called(provider, purpose, outcome, call.latencyMs);
    span.set({
      'esim.outcome': outcome,
      'http.response.status_code': call.status,
      'esim.error_code': call.code,
    });
    const line = { event: 'provider.call', provider, purpose, method, path, ...call };
    if (call.code === null) {
      permit.succeeded();
      health?.recordOk(provider);
      logger.info(line);
    } else {
      permit.failed();
      span.fail(call.code);
      health?.recordError(provider, call.code);
      logger.warn(line);
    }
  }
}

async function dial(
  { hostname, port, protocol }: buildConnector.Options,
  resolve: ResolveAddresses,
  signal: AbortSignal,
): Promise<Socket> {
  const host = hostname.replace(/^\[|\]$/g, '');
  const family = isIP(host);
  const addresses = family === 0 ? await resolve(host) : [{ address: host, family }];
  return connectToAny(addresses, Number(port || DEFAULT_PORTS[protocol]), signal);
}

/** Whether a connection ended before any response headers arrived. */
function isCut(error: unknown): boolean {
  const { code } = error as { code?: unknown };
  return code === 'UND_ERR_SOCKET' || code === 'ECONNRESET' || code === 'EPIPE';
}

/** The provider's fault as a word for the log; null when there is none. */
function faultOf(status: number, body: ReadBody): string | null {
  if (status >= 500) return `http_${status}`;
  if (status >= 200 && status < 300 && body.kind === 'unreadable') return body.why;
  return null;
}

function asProviderError(error: unknown): Error {
  if (error instanceof ProviderOutcomeUnknown || error instanceof ProviderUnavailable) return error;
  return isBeforeSending(error)
    ? new ProviderUnavailable(RETRY_CONNECTION_MS, error)
    : new ProviderOutcomeUnknown(error);
}

/**
 * Errors of connection attempts: name lookup, TCP, TLS with the certificate. An error's own code proves nothing:
 * `ERR_SSL_WRONG_VERSION_NUMBER` comes from a server without TLS, and also from one that fails after it has read the
 * request.
 */
const connectErrors = new WeakSet<object>();

// undici publishes here before it fails the waiting requests. Without this, every outcome would be unknown.
subscribe('undici:client:connectError', (message) => {
  const { error } = message as { readonly error?: unknown };
  if (error instanceof Error) connectErrors.add(error);
});

/** Whether the connection failed before any part of the request could be sent; false when in doubt. */
function isBeforeSending(error: unknown): boolean {
  return error instanceof Error && connectErrors.has(error);
}

/** A short word for logs and the health table. */
function failureCode(error: unknown): string {
  const { code } = (error ?? {}) as { code?: unknown };
  return typeof code === 'string' ? code.slice(0, 64) : 'unknown';
}
