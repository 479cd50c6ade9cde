import { AsyncLocalStorage } from 'node:async_hooks';
import { formatTraceparent, type TraceContext } from './traceparent.js';

/** The subject of some work, named in every log line and span within it. */
export interface Concerns {
  /** `X-Request-Id` of the call that began it. */
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

/** Runs `work`, and everything it awaits, within the span. Adds `concerns` to the surrounding ones. */
export function runWithin<T>(span: TraceContext | null, concerns: Concerns | undefined, work: () => T): T {
  const outer = current.getStore();
  const own = outer ? { ...outer.concerns, ...concerns } : (concerns ?? {});
  return current.run({ span: span ?? outer?.span ?? null, concerns: own }, work);
}

/**
 * Runs `work` outside the current work context, e.g. a transaction that ends many orders, or a claim that a
 * notification triggers.
 */
export function runApart<T>(work: () => T): T {
  return current.getStore() ? current.run(null, work) : work();
}

/** The request, order, top-up, delivery or endpoint that the current work concerns; empty outside any. */
export function currentConcerns(): Concerns {
  return current.getStore()?.concerns ?? NO_FIELDS;
}

/** The innermost current span; null outside of spans, and when nothing is traced. */
export function currentSpan(): TraceContext | null {
  return current.getStore()?.span ?? null;
}

/** The value of the column `traceparent` (D53). */
export function currentTraceparent(): string | null {
  const span = currentSpan();
  return span && formatTraceparent(span);
}

/** Fields of the current work for log lines. Outside any work, always the same empty object. */
export function fieldsOfWork(): Readonly<Record<string, string>> {
  const work = current.getStore();
  if (!work) return NO_FIELDS;
  return work.span ? { ...work.concerns, trace_id: work.span.traceId } : { ...work.concerns };
}

/** pino's merge: the line's own fields take precedence. Outside of any work nothing is copied. */
export function mergeFields(line: object, fields: object): object {
  return fields === NO_FIELDS ? line : { ...fields, ...line };
}
