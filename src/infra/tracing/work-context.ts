import { AsyncLocalStorage } from 'node:async_hooks';
import { formatTraceparent, type TraceContext } from './traceparent.js';

/** Whom some work concerns. Every log line and every span within it says so. */
export interface Concerns {
  /** Of the call that began it: `X-Request-Id`. */
  readonly requestId?: string;
  readonly orderId?: string;
  readonly topupId?: string;
  readonly deliveryId?: string;
  readonly endpointId?: string;
}

interface WorkContext {
  readonly concerns: Concerns;
  /** The innermost span; null when nothing is traced. */
  readonly span: TraceContext | null;
}

const current = new AsyncLocalStorage<WorkContext | null>();
const NO_FIELDS: Readonly<Record<string, string>> = Object.freeze({});

/** Runs `work`, and all that it awaits, within the span, concerned with what is said and with what surrounds it. */
export function runWithin<T>(span: TraceContext | null, concerns: Concerns | undefined, work: () => T): T {
  const outer = current.getStore();
  const own = outer ? { ...outer.concerns, ...concerns } : (concerns ?? {});
  return current.run({ span: span ?? outer?.span ?? null, concerns: own }, work);
}

/**
 * Runs what is no part of the work that happens to begin it: a transaction with the ends of many orders, or the claim that
 * a notification causes.
 */
export function runApart<T>(work: () => T): T {
  return current.getStore() ? current.run(null, work) : work();
}

/** Whom the work that this code is part of concerns; nothing outside of any. */
export function currentConcerns(): Concerns {
  return current.getStore()?.concerns ?? NO_FIELDS;
}

/** The innermost span that this code runs in; null outside of spans, and when nothing is traced. */
export function currentSpan(): TraceContext | null {
  return current.getStore()?.span ?? null;
}

/** As the column `traceparent` keeps it (D53). */
export function currentTraceparent(): string | null {
  const span = currentSpan();
  return span && formatTraceparent(span);
}

/** What log lines say of the work that they are written in; the same empty object outside of any. */
export function fieldsOfWork(): Readonly<Record<string, string>> {
  const work = current.getStore();
  if (!work) return NO_FIELDS;
  return work.span ? { ...work.concerns, trace_id: work.span.traceId } : { ...work.concerns };
}

/** pino's merge: the line's own fields win. Outside of any work nothing is copied. */
export function mergeFields(line: object, fields: object): object {
  return fields === NO_FIELDS ? line : { ...fields, ...line };
}
