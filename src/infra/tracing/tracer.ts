import { type Concerns, runWithin } from './work-context.js';
import type { TraceContext } from './traceparent.js';

/**
 * All attributes of spans except their subject: words and numbers from the code. The list is closed, so that no URL,
 * body, ICCID, activation code or key can get into a span (D53). `http.*` and `error.type` follow OpenTelemetry.
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
  /** A name with few values: a route or a kind of job; never an id. */
  readonly name: string;
  /** server: an incoming call; consumer: a job; client: an outgoing call. */
  readonly kind: 'server' | 'consumer' | 'client';
  /** Null starts a trace. Defaults to the current span. */
  readonly parent?: TraceContext | null;
  readonly links?: readonly (TraceContext | null)[];
  readonly concerns?: Concerns;
  readonly attributes?: SpanAttributes;
  /** Milliseconds since the epoch; default now. */
  readonly startedAt?: number;
  /** Ids that other processes can derive; a parent's trace takes precedence. */
  readonly ids?: { readonly traceId: string; readonly spanId: string };
}

export interface Span {
  /** Null when nothing is traced. */
  readonly context: TraceContext | null;
  /** Later values replace earlier ones; null and undefined are omitted. */
  set(attributes: { readonly [Name in SpanAttribute]?: string | number | null | undefined }): void;
  /** @param errorType a word from the code: an error's class or a status. Never a message */
  fail(errorType: string): void;
  end(): void;
}

/** Creates spans explicitly, at the few places that matter. Without tracing it does nothing. */
export abstract class Tracer {
  /** Whether spans are exported. */
  abstract readonly isOn: boolean;

  /** A span that the caller ends. */
  abstract start(request: SpanRequest): Span;

  /** Exports waiting spans for at most `withinMs`, and drops the rest. Never rejects. */
  abstract close(withinMs: number): Promise<void>;

  /** Runs `work` in its own span; if it throws, the span fails with the error's class. */
  abstract inSpan<T>(request: SpanRequest, work: (span: Span) => Promise<T>): Promise<T>;
}

const NO_SPAN: Span = {
  context: null,
  set: () => undefined,
  fail: () => undefined,
  end: () => undefined,
};

/** Tracer of a process without an endpoint. Log lines still name the subject of the work. */
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
