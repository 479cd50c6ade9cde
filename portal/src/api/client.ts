import { Intents } from './intents.ts';
import type { Problem } from './types.gen.ts';

/** A response other than 2xx. `message` is prose for people. */
export class ApiError extends Error {
  readonly status: number;
  /** Whether a retry of the same call may succeed. */
  readonly isTransient: boolean;
  readonly code: string;
  readonly requestId: string | null;
  /** Error messages by field name. */
  readonly fields: ReadonlyMap<string, string>;
  /** The refused call, such as `POST api-keys`. */
  readonly call: string;

  constructor(status: number, problem: Partial<Problem>, call: string) {
    super(problem.detail ?? `The portal returned status ${status}. Try again.`);
    this.status = status;
    this.call = call;
    // A proxy may also send these when the service does not respond.
    this.isTransient = status === 408 || status === 429 || status >= 500;
    this.code = problem.code ?? 'internal_error';
    this.requestId = problem.request_id ?? null;
    this.fields = new Map(
      (problem.errors ?? []).map(({ pointer, message }) => [
        pointer.replace(/^[/?]/, '').split('/')[0]!,
        message,
      ]),
    );
  }
}

export type Query = Record<string, string | number | boolean | null | undefined>;
type Method = 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';

/** The session has ended: show where to get another one. */
const ended = new Set<() => void>();
/** The browser has a different session than the one in which this page was opened. */
const changed = new Set<() => void>();

/** Calls `listener` when a response says that the session has ended. Returns the unsubscribe function. */
export function onSessionEnded(listener: () => void): () => void {
  ended.add(listener);
  return () => ended.delete(listener);
}

/** Calls `listener` when another sign-in link was opened in this browser. Returns the unsubscribe function. */
export function onSessionChanged(listener: () => void): () => void {
  changed.add(listener);
  return () => changed.delete(listener);
}

function pathWithQuery(path: string, query: Query = {}): string {
  const search = new URLSearchParams();
  for (const [name, value] of Object.entries(query))
    if (value !== undefined && value !== null && value !== '') search.set(name, String(value));
  const text = search.toString();
  return `/portal/v1/${path}${text === '' ? '' : `?${text}`}`;
}

/** The session that this page shows; the cookie may change to another. Null until it is known. */
let shownSession: string | null = null;

/** Sends this session's id with every later call. */
export function callFor(sessionId: string): void {
  shownSession = sessionId;
}

async function problemOf(response: Response): Promise<Partial<Problem>> {
  try {
    return (await response.json()) as Problem;
  } catch {
    return {};
  }
}

type CallOptions = { query?: Query; body?: unknown; signal?: AbortSignal; key?: string };

async function call(method: Method, path: string, options: CallOptions): Promise<Response> {
  const headers: Record<string, string> = { accept: 'application/json' };
  if (shownSession !== null) headers['x-portal-session'] = shownSession;
  const init: RequestInit = { method, credentials: 'same-origin', headers };
  if (options.key !== undefined) headers['idempotency-key'] = options.key;
  if (options.signal) init.signal = options.signal;
  if (method !== 'GET') {
    // The server accepts JSON only, for DELETE too, because a form on another site cannot send it.
    headers['content-type'] = 'application/json';
    init.body = JSON.stringify(options.body ?? {});
  }
  const response = await fetch(pathWithQuery(path, options.query), init);
  if (response.ok) return response;
  const error = new ApiError(response.status, await problemOf(response), `${method} ${path}`);
  if (error.status === 401) for (const listener of ended) listener();
  if (error.code === 'session_changed') for (const listener of changed) listener();
  throw error;
}

/**
 * Reads and returns the whole envelope.
 * @throws {ApiError} for any response other than 2xx; TypeError without a response
 */
export async function get<T>(path: string, query: Query = {}, signal?: AbortSignal): Promise<T> {
  const response = await call('GET', path, signal ? { query, signal } : { query });
  return (await response.json()) as T;
}

/**
 * Downloads a file. A plain link could not send the session's id.
 * @throws {ApiError} for any response other than 2xx; TypeError without a response
 */
export async function getFile(path: string, query: Query): Promise<Blob> {
  return (await call('GET', path, { query })).blob();
}

/**
 * Changes an object and returns the envelope's `data`. Not for a POST: see `post`.
 * @throws {ApiError} for any response other than 2xx; TypeError without a response
 */
export async function send<T>(method: Exclude<Method, 'GET'>, path: string, body?: unknown): Promise<T> {
  const response = await call(method, path, { body });
  return ((await response.json()) as { data: T }).data;
}

const intents = new Intents();

/** Whether the outcome is unknown: the server may have applied the change, or may still apply it. */
function isUnanswered(error: unknown): boolean {
  if (!(error instanceof ApiError)) return true;
  return error.isTransient || error.code === 'idempotency_in_progress';
}

/**
 * Posts a change once, even if it is requested again before a response arrives, and returns the envelope's `data`. A
 * value that is shown once is null if the response that contained it was lost.
 * @throws {ApiError} for any response other than 2xx; TypeError without a response
 */
export async function post<T>(path: string, body?: unknown): Promise<T> {
  const key = intents.keyOf(path, body);
  try {
    const response = await call('POST', path, { body, key });
    const { data } = (await response.json()) as { data: T };
    intents.settle(path, body);
    return data;
  } catch (error) {
    if (!isUnanswered(error)) intents.settle(path, body);
    throw error;
  }
}
