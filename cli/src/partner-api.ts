import { randomUUID } from 'node:crypto';
import { CliError, EXIT } from './exit-codes.js';

export interface Money {
  readonly amount: number;
  readonly currency: string;
}
export interface Package {
  readonly id: string;
  readonly title: string;
  readonly data_bytes: number | null;
  readonly validity_days: number;
  readonly unlimited: boolean;
  readonly topup_supported: boolean;
  readonly available: boolean;
  readonly price: Money;
}
export interface Order {
  readonly id: string;
  readonly status: string;
  readonly package_id: string;
  readonly quantity: number;
  readonly quantity_issued: number;
  readonly total: Money;
  readonly reference: string | null;
  readonly esims: readonly { readonly esim_id: string; readonly iccid: string; readonly status: string }[];
  readonly failure: { readonly code: string; readonly reason: string } | null;
  readonly created_at: string;
}
export interface Topup {
  readonly id: string;
  readonly status: string;
  readonly failure: { readonly code: string; readonly reason: string } | null;
}
export interface Esim {
  readonly id: string;
  readonly status: string;
  readonly iccid: string;
}
export interface Me {
  readonly partner_id: string;
  readonly partner_name: string;
  readonly mode: string;
  readonly key_id: string;
}
export interface ServiceEvent {
  readonly id: string;
  readonly type: string;
  readonly created_at: string;
  readonly data: Readonly<Record<string, unknown>>;
}
export interface Page<T> {
  readonly data: readonly T[];
  readonly has_more: boolean;
  readonly next_cursor: string | null;
}

/** Why a call failed, as the service said it; `code` is of the list in docs/errors.md. */
export class ApiError extends Error {
  constructor(
    readonly status: number,
    readonly code: string,
    readonly detail: string,
    readonly requestId: string | undefined,
    readonly retryable: boolean,
    readonly retryAfterSeconds: number | undefined,
    readonly errors: readonly { readonly pointer: string; readonly message: string }[] = [],
  ) {
    super(`${code}: ${detail}`);
    this.name = 'ApiError';
  }
}

/** The service was not reached, or its answer did not arrive. A POST may have been carried out. */
export class ConnectionError extends Error {
  override readonly name = 'ConnectionError';
}

type Query = Readonly<Record<string, string | number | boolean | undefined>>;

const CALL_TIMEOUT_MS = 30_000;

/** The calls that the commands make. */
export class PartnerApi {
  constructor(
    readonly baseUrl: string,
    private readonly apiKey: string,
    private readonly signal: AbortSignal,
  ) {}

  me(): Promise<Me> {
    return this.read('/v1/me');
  }
  packages(query: Query): Promise<Page<Package>> {
    return this.list('/v1/catalog', query);
  }
  order(id: string): Promise<Order> {
    return this.read(`/v1/orders/${encodeURIComponent(id)}`);
  }
  orders(query: Query): Promise<Page<Order>> {
    return this.list('/v1/orders', query);
  }
  placeOrder(body: unknown, idempotencyKey: string): Promise<Order> {
    return this.write('/v1/orders', body, idempotencyKey);
  }
  esim(id: string): Promise<Esim> {
    return this.read(`/v1/esims/${encodeURIComponent(id)}`);
  }
  esims(query: Query): Promise<Page<Esim>> {
    return this.list('/v1/esims', query);
  }
  usage(id: string): Promise<unknown> {
    return this.read(`/v1/esims/${encodeURIComponent(id)}/usage`);
  }
  topupPackages(esimId: string): Promise<Page<Package>> {
    return this.list(`/v1/esims/${encodeURIComponent(esimId)}/topup-packages`, {});
  }
  placeTopup(body: unknown, idempotencyKey: string): Promise<Topup> {
    return this.write('/v1/topups', body, idempotencyKey);
  }
  topup(id: string): Promise<Topup> {
    return this.read(`/v1/topups/${encodeURIComponent(id)}`);
  }
  /** Plays the device of a Sandbox eSIM. */
  simulate(esimId: string, what: 'activate' | 'consume' | 'expire', body?: unknown): Promise<Esim> {
    return this.write(`/v1/sandbox/esims/${encodeURIComponent(esimId)}/${what}`, body, randomUUID());
  }
  balance(): Promise<unknown> {
    return this.read('/v1/balance');
  }
  event(id: string): Promise<ServiceEvent> {
    return this.read(`/v1/events/${encodeURIComponent(id)}`);
  }

  /** A page of the feed; the service holds an empty one back for `waitSeconds`, and says whether it can. */
  async events(
    query: Query,
    waitSeconds = 0,
  ): Promise<Page<ServiceEvent> & { readonly next_cursor: string; readonly waits: boolean }> {
    const headers: Record<string, string> = waitSeconds > 0 ? { prefer: `wait=${waitSeconds}` } : {};
    const { body, answer } = await this.call('GET', '/v1/events', {
      query,
      headers,
      extraMs: waitSeconds * 1_000,
    });
    const page = body as Page<ServiceEvent> & { next_cursor: string };
    return { ...page, waits: answer.headers.has('preference-applied') };
  }

  private async read<T>(path: string): Promise<T> {
    return ((await this.call('GET', path)).body as { data: T }).data;
  }

  private async list<T>(path: string, query: Query): Promise<Page<T>> {
    return (await this.call('GET', path, { query })).body as Page<T>;
  }

  private async write<T>(path: string, body: unknown, idempotencyKey: string): Promise<T> {
    const headers = { 'idempotency-key': idempotencyKey };
    return ((await this.call('POST', path, { body, headers })).body as { data: T }).data;
  }

  private async call(
    method: string,
    path: string,
    options: { query?: Query; body?: unknown; headers?: Record<string, string>; extraMs?: number } = {},
  ): Promise<{ body: unknown; answer: Response }> {
    const url = new URL(this.baseUrl + path);
    for (const [name, value] of Object.entries(options.query ?? {})) {
      if (value !== undefined) url.searchParams.set(name, String(value));
    }
    const json = options.body === undefined ? {} : { 'content-type': 'application/json' };
    let answer: Response;
    let text: string;
    try {
      answer = await fetch(url, {
        method,
        headers: { authorization: `Bearer ${this.apiKey}`, ...json, ...options.headers },
        signal: AbortSignal.any([this.signal, AbortSignal.timeout(CALL_TIMEOUT_MS + (options.extraMs ?? 0))]),
        ...(options.body === undefined ? {} : { body: JSON.stringify(options.body) }),
      });
      text = await answer.text();
    } catch (error) {
      this.signal.throwIfAborted();
      throw new ConnectionError(`${url.origin} was not reached`, { cause: error });
    }
    return { body: parsed(answer, text), answer };
  }
}

function parsed(answer: Response, text: string): unknown {
  let body: unknown;
  try {
    body = JSON.parse(text);
  } catch {
    throw new CliError(
      EXIT.unavailable,
      `the answer is no JSON (status ${answer.status})`,
      'Is this the API? See --base-url.',
    );
  }
  if (answer.ok) return body;
  const problem = body as {
    code?: string;
    detail?: string;
    request_id?: string;
    retryable?: boolean;
    errors?: { pointer: string; message: string }[];
  };
  const retryAfter = answer.headers.get('retry-after');
  throw new ApiError(
    answer.status,
    problem.code ?? 'unknown',
    problem.detail ?? '',
    problem.request_id,
    problem.retryable ?? answer.status >= 500,
    retryAfter === null ? undefined : Number(retryAfter),
    problem.errors,
  );
}
