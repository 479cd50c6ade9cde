import { type CallFacts, EsimApiError, EsimConnectionError } from './errors.js';
import type { ErrorCode, FieldProblem } from './types.js';

export interface TransportOptions {
  readonly apiKey: string;
  /** Address of the partner API, e.g. `https://api.example.com`, with or without `/v1`. */
  readonly baseUrl: string;
  /** Defaults to the runtime's own. */
  readonly fetch?: typeof fetch;
  /**
   * Timeout of one try, from the first byte sent to the last one received; default 30 s. Time spent waiting for
   * events is added to it.
   */
  readonly timeoutMs?: number;
  /** Deadline for all tries of a call and the pauses between them; default 60 s. */
  readonly deadlineMs?: number;
  /** Maximum tries per call; default 5. */
  readonly maxTries?: number;
  /** Called before each try is sent. It provides the idempotency key, which an aborted call does not return. */
  readonly onTry?: (call: CallFacts) => void;
  /** Called for every response, for logs and metrics. */
  readonly onAnswer?: (answer: AnswerFacts) => void;
}

export interface CallOptions {
  /**
   * Aborts the call at once. The call then throws the reason of the signal. This ends the wait but not the purchase: to
   * abort a POST safely, pass an `idempotencyKey` and repeat the same call with it later.
   */
  readonly signal?: AbortSignal;
  /** Overrides the client's deadline for this call. */
  readonly deadlineMs?: number;
}

export interface WaitingRead extends CallOptions {
  /** How long the service may hold the call until the order or top-up has ended; at most 25 s. */
  readonly waitSeconds?: number;
}

export interface WriteOptions extends CallOptions {
  /** One key for all tries; defaults to a new UUID. A repeated call with the same key takes effect only once. */
  readonly idempotencyKey?: string;
}

export interface AnswerFacts {
  readonly method: string;
  readonly path: string;
  readonly status: number;
  readonly requestId: string | null;
  readonly attempt: number;
  /** Whether this is the stored response of an earlier call with the same key. */
  readonly replayed: boolean;
  readonly rateLimit: { readonly limit: number; readonly remaining: number } | null;
}

export interface Call extends WriteOptions {
  readonly method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';
  /** Path below `/v1`. */
  readonly path: string;
  readonly query?: object;
  readonly body?: unknown;
  /** How long the service may wait for events before it responds. */
  readonly waitSeconds?: number;
}

export interface Answer {
  readonly body: {
    data: unknown;
    has_more?: boolean;
    next_cursor?: string | null;
    /** In a shelf. */
    dropped?: unknown;
    /** In the list of plans. */
    pooled?: boolean;
  };
  readonly headers: Headers;
}

const TIMEOUT_MS = 30_000;
const DEADLINE_MS = 60_000;
const MAX_TRIES = 5;
const FIRST_PAUSE_MS = 500;
const MAX_PAUSE_MS = 8_000;

const HEADER_VALUE = /^[\x21-\x7e]+$/;

/** A try that may be repeated after at least `retryAfterMs`. */
class Failed {
  constructor(
    readonly error: EsimApiError | EsimConnectionError,
    readonly retryAfterMs: number,
  ) {}
}

/**
 * Sends calls. All tries of a call share one idempotency key and one deadline. A call is retried only if there was no
 * response from the service, or if its problem body says `retryable`.
 */
export class Transport {
  // Private at run time too, so that logging a client or one of its resources does not log the key.
  readonly #options: TransportOptions;
  readonly #baseUrl: string;
  readonly #fetch: typeof fetch;

  constructor(options: TransportOptions) {
    // A key read from a file often ends with a line break.
    const apiKey = options.apiKey?.trim();
    if (!apiKey)
      throw new TypeError(
        'apiKey is missing. Pass a key from the portal, and check that ESIM_API_KEY is set.',
      );
    // Reject it here. Otherwise every call would fail with a runtime error that quotes the header, including the key.
    if (!HEADER_VALUE.test(apiKey))
      throw new TypeError(
        'apiKey has an invalid character. Pass svc_sk_test_ or svc_sk_live_ and 32 letters and digits.',
      );
    this.#options = { ...options, apiKey };
    this.#baseUrl = baseUrlOf(options.baseUrl);
    // Call it as a plain function, because some runtimes reject a `fetch` called as a method of another object.
    const given = options.fetch ?? globalThis.fetch;
    this.#fetch = (input, init) => given(input, init);
  }

  /** @throws EsimApiError, EsimConnectionError, and the reason of `signal` when it aborts */
  async send(call: Call): Promise<Answer> {
    const { deadlineMs = DEADLINE_MS, maxTries = MAX_TRIES } = this.#options;
    const endsAt = performance.now() + (call.deadlineMs ?? deadlineMs) + waitMsOf(call);
    const idempotencyKey = call.method === 'POST' ? (call.idempotencyKey ?? crypto.randomUUID()) : null;
    const { method } = call;
    const path = `/v1${call.path}`;
    const baseUrl = this.#baseUrl;
    const mode = modeOf(this.#options.apiKey);
    // An earlier try may have taken effect even if the last one never reached the service.
    let mayHaveArrived = false;
    for (let tries = 1; ; tries++) {
      const facts: CallFacts = { method, baseUrl, path, mode, idempotencyKey, tries, mayHaveArrived };
      this.#options.onTry?.(facts);
      const outcome = await this.tryOnce(call, facts, endsAt);
      if (!(outcome instanceof Failed)) return outcome;
      ({ mayHaveArrived } = outcome.error.call);
      const pauseMs = Math.max(outcome.retryAfterMs, jitter(tries));
      if (tries >= maxTries || performance.now() + pauseMs >= endsAt) throw outcome.error;
      await pause(pauseMs, call.signal);
    }
  }

  private async tryOnce(call: Call, facts: CallFacts, endsAt: number): Promise<Answer | Failed> {
    const { timeoutMs = TIMEOUT_MS } = this.#options;
    // Node accepts whole milliseconds only.
    const forMs = Math.max(1, Math.ceil(Math.min(timeoutMs + waitMsOf(call), endsAt - performance.now())));
    const timeout = AbortSignal.timeout(forMs);
    const signal = call.signal ? AbortSignal.any([timeout, call.signal]) : timeout;
    let response: Response;
    let text: string;
    try {
      response = await this.#fetch(
        `${this.#baseUrl}${facts.path}${queryOf(call.query)}`,
        this.requestOf(call, facts, signal),
      );
      // Read the body within the timeout, because a truncated body is not a response.
      text = await response.text();
    } catch (cause) {
      call.signal?.throwIfAborted();
      const why = timeout.aborted
        ? `no response within ${forMs} ms`
        : `the connection failed: ${messageOf(cause)}`;
      const left = timeout.aborted || !neverLeft(cause);
      return new Failed(new EsimConnectionError(why, arrived(facts, left), { cause }), 0);
    }
    this.#options.onAnswer?.(answerFacts(facts, response));
    return toOutcome(response, text, facts);
  }

  private requestOf(call: Call, { idempotencyKey }: CallFacts, signal: AbortSignal): RequestInit {
    const headers: Record<string, string> = {
      authorization: `Bearer ${this.#options.apiKey}`,
      accept: 'application/json',
    };
    if (idempotencyKey !== null) headers['idempotency-key'] = idempotencyKey;
    if (call.waitSeconds) headers['prefer'] = `wait=${call.waitSeconds}`;
    if (call.body === undefined) return { method: call.method, headers, signal };
    headers['content-type'] = 'application/json';
    return { method: call.method, headers, signal, body: JSON.stringify(call.body) };
  }
}

function toOutcome(response: Response, text: string, facts: CallFacts): Answer | Failed {
  const { status, headers } = response;
  const body = parse(text);
  if (response.ok && body && 'data' in body) return { body: body, headers };
  const retryAfterMs = retryAfterOf(headers);
  if (response.ok || !isProblem(body)) {
    // The response comes from a proxy in between, or it is truncated.
    const why = `the response with status ${status} did not come from the service`;
    const error = new EsimConnectionError(why, arrived(facts, true));
    if (response.ok || status >= 500 || status === 408 || status === 429)
      return new Failed(error, retryAfterMs);
    throw error;
  }
  const { code, detail, errors = [], request_id: requestId, retryable } = body;
  const refusal = { code, status, detail, errors, requestId, retryable };
  const error = new EsimApiError(refusal, afterRefusal(facts, refusal));
  if (retryable) return new Failed(error, retryAfterMs);
  throw error;
}

interface ProblemBody {
  readonly code: ErrorCode;
  readonly detail: string;
  readonly errors?: readonly FieldProblem[];
  readonly request_id: string;
  readonly retryable: boolean;
}

function isProblem(body: object | null): body is ProblemBody {
  const { code, retryable } = (body ?? {}) as Partial<ProblemBody>;
  return typeof code === 'string' && typeof retryable === 'boolean';
}

function parse(text: string): object | null {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === 'object' ? value : null;
  } catch {
    return null;
  }
}

function answerFacts({ method, path, tries }: CallFacts, { status, headers }: Response): AnswerFacts {
  const limit = headers.get('x-ratelimit-limit');
  return {
    method,
    path,
    status,
    requestId: headers.get('x-request-id'),
    attempt: tries,
    replayed: headers.get('idempotent-replayed') === 'true',
    rateLimit:
      limit === null
        ? null
        : { limit: Number(limit), remaining: Number(headers.get('x-ratelimit-remaining')) },
  };
}

function queryOf(query: object | undefined): string {
  const parameters = new URLSearchParams();
  for (const [name, value] of Object.entries(query ?? {}) as [string, string | number | null | undefined][])
    if (value !== undefined && value !== null) parameters.set(name, String(value));
  return parameters.size === 0 ? '' : `?${parameters}`;
}

/** The header contains seconds or a date (RFC 9110). Any other value counts as 0. */
function retryAfterOf(headers: Headers): number {
  const value = headers.get('retry-after') ?? '';
  const ms = /^\d+$/.test(value) ? Number(value) * 1_000 : Date.parse(value) - Date.now();
  return ms > 0 ? ms : 0;
}

function arrived(facts: CallFacts, mayHaveArrived: boolean): CallFacts {
  return { ...facts, mayHaveArrived: facts.mayHaveArrived || mayHaveArrived };
}

/** Refusals that the service stores under the key. No attempt with this key has taken effect or ever will. */
const KEPT = new Set([402, 404, 409]);

/** A 5xx may follow a commit. While the first try is still running, its outcome is unknown. */
function afterRefusal(
  facts: CallFacts,
  { status, code, retryable }: Pick<ProblemBody, 'code' | 'retryable'> & { readonly status: number },
): CallFacts {
  if (KEPT.has(status) && !retryable) return { ...facts, mayHaveArrived: false };
  return arrived(facts, status >= 500 || code === 'idempotency_in_progress');
}

/**
 * Removes a trailing slash and `/v1`.
 * @throws TypeError for anything but an http or https URL
 */
function baseUrlOf(given: string): string {
  const example = 'Pass the address of the API, for example https://api.example.com';
  if (!given?.trim())
    throw new TypeError(`baseUrl is missing. ${example}, and check that ESIM_BASE_URL is set.`);
  const url = URL.canParse(given) ? new URL(given) : null;
  if (url === null || !/^https?:$/.test(url.protocol))
    throw new TypeError(`baseUrl does not start with http:// or https://. ${example}.`);
  return `${url.origin}${url.pathname.replace(/\/+$/, '').replace(/\/v1$/, '')}`;
}

/** The mode of a key, from its prefix; null for a key without a known prefix. */
export function modeOf(apiKey: string): 'sandbox' | 'live' | null {
  if (apiKey.startsWith('svc_sk_test_')) return 'sandbox';
  return apiKey.startsWith('svc_sk_live_') ? 'live' : null;
}

const MAX_CAUSE = 200;

/**
 * `fetch` reports "fetch failed" and hides the reason in its cause, or in several errors if a name has several
 * addresses.
 */
function messageOf(error: unknown): string {
  const { cause = error } = error as { cause?: unknown };
  const {
    message,
    code,
    errors = [],
  } = cause as {
    message?: string;
    code?: unknown;
    errors?: readonly Error[];
  };
  const said = message || [...new Set(errors.map((each) => each.message))].join('; ') || String(cause);
  const name = typeof code === 'string' && !said.includes(code) ? ` (${code})` : '';
  return `${said.slice(0, MAX_CAUSE)}${name}`;
}

/** Error codes of Node and Bun that prove that no connection was made. */
const NEVER_LEFT = /^(ECONNREFUSED|ENOTFOUND|EAI_AGAIN|ConnectionRefused)$/;

function neverLeft(error: unknown): boolean {
  const { code, cause } = error as { code?: unknown; cause?: { code?: unknown } };
  return NEVER_LEFT.test(String(cause?.code ?? code));
}

function waitMsOf({ waitSeconds = 0 }: Call): number {
  return waitSeconds * 1_000;
}

/** Full jitter, so that callers that failed together do not retry together. */
function jitter(tries: number): number {
  return Math.random() * Math.min(MAX_PAUSE_MS, FIRST_PAUSE_MS * 2 ** (tries - 1));
}

/** @throws the reason of `signal` as soon as it aborts */
export function pause(ms: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    if (signal?.aborted) return reject(signal.reason as Error);
    const end = (): void => {
      clearTimeout(timer);
      reject(signal!.reason as Error);
    };
    const timer = setTimeout(() => {
      signal?.removeEventListener('abort', end);
      resolve();
    }, ms);
    signal?.addEventListener('abort', end, { once: true });
  });
}
