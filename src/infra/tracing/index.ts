/**
 * Traces by OpenTelemetry, and whom log lines concern (D53). Owns no table; features keep `traceparent` on their rows.
 * Used by the edge, the workers, the providers' HTTP client and the webhooks: `Tracer.inSpan` runs work in a span, and
 * `currentTraceparent` is what a row keeps of it. Off unless an endpoint is set: then `otlp/`, the one folder that knows
 * OpenTelemetry, is not loaded. Flow: span -> bounded queue -> OTLP over HTTP; what no collector takes is dropped and
 * counted. `runApart` is for what is done for many at once.
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
