import { Intents } from './intents.ts';
import type { Problem } from './types.gen.ts';

/** An answer that is no 2xx. `message` is prose for people. */
export class ApiError extends Error {
  readonly status: number;
  /** Not the call is at fault: the same call may be answered later. */
  readonly isTransient: boolean;
  readonly code: string;
  readonly requestId: string | null;
  /** What is wrong with which field, by the field's name. */
  readonly fields: ReadonlyMap<string, string>;

  constructor(status: number, problem: Partial<Problem>) {
    super(problem.detail ?? `The portal answered with status ${status}.`);
    this.status = status;
    // A proxy in front may say it, too, when the service does not answer.
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
type Method = 'GET' | 'POST' | 'PATCH' | 'DELETE';

/** The session has ended: the next thing to show is where to get another. */
const ended = new Set<() => void>();
/** The browser has got another session than the one that this page was opened in. */
const changed = new Set<() => void>();
/** The call needs a younger session than this one. */
const stepUps = new Set<() => void>();

/** Calls `listener` when an answer says that there is no session any more. Returns what stops that. */
export function onSessionEnded(listener: () => void): () => void {
  ended.add(listener);
  return () => ended.delete(listener);
}

/** Calls `listener` when another link was opened in this browser since. Returns what stops that. */
export function onSessionChanged(listener: () => void): () => void {
  changed.add(listener);
  return () => changed.delete(listener);
}

/** Calls `listener` when an action was refused because the session is too old for it. Returns what stops that. */
export function onStepUp(listener: () => void): () => void {
  stepUps.add(listener);
  return () => stepUps.delete(listener);
}

function pathWithQuery(path: string, query: Query = {}): string {
  const search = new URLSearchParams();
  for (const [name, value] of Object.entries(query))
    if (value !== undefined && value !== null && value !== '') search.set(name, String(value));
  const text = search.toString();
  return `/portal/v1/${path}${text === '' ? '' : `?${text}`}`;
}

/** The session that this page shows; the cookie may become another's. Null until it is known. */
let shownSession: string | null = null;

/** From now on every call says that it is for this session. */
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
    // The listener takes JSON only, of DELETE too: a form of another site cannot send it.
    headers['content-type'] = 'application/json';
    init.body = JSON.stringify(options.body ?? {});
  }
  const response = await fetch(pathWithQuery(path, options.query), init);
  if (response.ok) return response;
  const error = new ApiError(response.status, await problemOf(response));
  if (error.status === 401) for (const listener of ended) listener();
  if (error.code === 'session_changed') for (const listener of changed) listener();
  if (error.status === 403 && error.code === 'step_up_required') for (const listener of stepUps) listener();
  throw error;
}

/**
 * Reads; answers the whole envelope.
 * @throws {ApiError} on any answer but a 2xx; TypeError when there was none.
 */
export async function get<T>(path: string, query: Query = {}, signal?: AbortSignal): Promise<T> {
  const response = await call('GET', path, signal ? { query, signal } : { query });
  return (await response.json()) as T;
}

/**
 * Reads a file. A link to it could not say for which session.
 * @throws {ApiError} on any answer but a 2xx; TypeError when there was none.
 */
export async function getFile(path: string, query: Query): Promise<Blob> {
  return (await call('GET', path, { query })).blob();
}

/**
 * Changes something; answers `data` of the envelope. Not for a POST: see `post`.
 * @throws {ApiError} on any answer but a 2xx; TypeError when there was none.
 */
export async function send<T>(method: Exclude<Method, 'GET'>, path: string, body?: unknown): Promise<T> {
  const response = await call(method, path, { body });
  return ((await response.json()) as { data: T }).data;
}

const intents = new Intents();

/** Whether the server may have carried a change out, or may still, without that anybody here knows how it went. */
function isUnanswered(error: unknown): boolean {
  if (!(error instanceof ApiError)) return true;
  return error.isTransient || error.code === 'idempotency_in_progress';
}

/**
 * Changes something once, however often it is asked for before an answer has come; answers `data` of the envelope. What is
 * shown once is null in it when the answer that had it was lost.
 * @throws {ApiError} on any answer but a 2xx; TypeError when there was none.
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
