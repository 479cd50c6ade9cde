import { type Concerns, runWithin } from './work-context.js';
import type { TraceContext } from './traceparent.js';

/**
 * All that a span may say besides what it concerns: words and numbers of the code. The list is closed, so that no URL,
 * body, ICCID, activation code or key can get into one (D53). `http.*` and `error.type` as OpenTelemetry defines them.
 */
export type SpanAttribute =
  | 'http.request.method'
  | 'http.route'
  | 'http.response.status_code'
  | 'error.type'
  | 'esim.attempt'
  | 'esim.error_code'
  | 'esim.event_type'
  | 'esim.jobs'
  | 'esim.mode'
  | 'esim.outcome'
  | 'esim.provider'
  | 'esim.purpose'
  | 'esim.quantity'
  | 'esim.status_class'
  | 'esim.wait_ms';

export type SpanAttributes = { readonly [Name in SpanAttribute]?: string | number };

export interface SpanRequest {
  /** Of few values: a route, a kind of job; never an id. */
  readonly name: string;
  /** server: a call of somebody; consumer: a job; client: a call to somebody. */
  readonly kind: 'server' | 'consumer' | 'client';
  /** Null: the first of a trace. Left out: the span that this code runs in. */
  readonly parent?: TraceContext | null;
  readonly links?: readonly (TraceContext | null)[];
  readonly concerns?: Concerns;
  readonly attributes?: SpanAttributes;
  /** Milliseconds of the epoch; now, unless said. */
  readonly startedAt?: number;
  /** Ids that others know without being told; a parent's trace goes before. */
  readonly ids?: { readonly traceId: string; readonly spanId: string };
}

export interface Span {
  /** Null when nothing is traced. */
  readonly context: TraceContext | null;
  /** Later values replace earlier ones; one that is null or undefined is left out. */
  set(attributes: { readonly [Name in SpanAttribute]?: string | number | null | undefined }): void;
  /** @param errorType a word of the code: an error's class, a status. Never a message */
  fail(errorType: string): void;
  end(): void;
}

/** Makes spans by hand, at the few places that matter. Where nothing is traced it does nothing (D53). */
export abstract class Tracer {
  /** Whether spans go anywhere. */
  abstract readonly isOn: boolean;

  /** A span that the caller ends. */
  abstract start(request: SpanRequest): Span;

  /** Sends what waits, for `withinMs` at most, and drops the rest. Never rejects. */
  abstract close(withinMs: number): Promise<void>;

  /** Runs `work` in a span of its own; one that throws has failed by the class of its error. */
  abstract inSpan<T>(request: SpanRequest, work: (span: Span) => Promise<T>): Promise<T>;
}

const NO_SPAN: Span = {
  context: null,
  set: () => undefined,
  fail: () => undefined,
  end: () => undefined,
};

/** Of a process without an endpoint for traces. What work concerns is said on log lines all the same. */
class NoTracer extends Tracer {
  readonly isOn = false;

  start(): Span {
    return NO_SPAN;
  }

  close(): Promise<void> {
    return Promise.resolve();
  }

  inSpan<T>({ concerns }: SpanRequest, work: (span: Span) => Promise<T>): Promise<T> {
    return concerns ? runWithin(null, concerns, () => work(NO_SPAN)) : work(NO_SPAN);
  }
}

export const NO_TRACER: Tracer = new NoTracer();
