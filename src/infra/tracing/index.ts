/**
 * OpenTelemetry traces, and the subject of log lines (D53). Owns no table; features store `traceparent` in their rows.
 * Used by the edge, the workers, the providers' HTTP client and the webhooks: `Tracer.inSpan` runs work in a span, and
 * `currentTraceparent` is the part that a row stores. Off unless an endpoint is set: `otlp/`, the only folder that
 * depends on OpenTelemetry, is not loaded then. Flow: span -> bounded queue -> OTLP over HTTP; spans that no collector
 * takes are dropped and counted. `runApart` is for work shared by many callers.
 */
export { formatTraceparent, parseTraceparent, type TraceContext } from './traceparent.js';
export { NO_TRACER, type Span, type SpanAttributes, type SpanRequest, Tracer } from './tracer.js';
export { openTracer, TracingModule } from './tracing.module.js';
export {
  type Concerns,
  currentSpan,
  currentTraceparent,
  fieldsOfWork,
  mergeFields,
  runApart,
  runWithin,
} from './work-context.js';
