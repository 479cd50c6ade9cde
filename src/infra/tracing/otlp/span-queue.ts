import type { BatchSpanProcessor, ReadableSpan, SpanExporter, SpanProcessor } from '@opentelemetry/sdk-trace';
import type { Logger } from 'pino';
import type { Counter, Registry } from 'prom-client';
import { counterIn } from '../../metrics.js';

type ExportResult = Parameters<Parameters<SpanExporter['export']>[1]>[0];

/** Maximum waiting spans, some megabytes. Further spans are dropped, so that no caller waits. */
export const MAX_WAITING_SPANS = 2_048;
/** OpenTelemetry's number; its enumeration would need another package. */
const SUCCESS = 0;

/**
 * Counts lost spans around OpenTelemetry's own batches, which silently drop spans when the queue is full or an export
 * fails. Logs when exports start to fail, and when they work again.
 */
export class SpanQueue implements SpanProcessor {
  private readonly dropped: Counter<'reason'>;
  private readonly batches: BatchSpanProcessor;
  private waiting = 0;
  private isFailing = false;

  /** @param batchesOver creates the queue over the exporter, with `MAX_WAITING_SPANS` */
  constructor(
    exporter: SpanExporter,
    batchesOver: (exporter: SpanExporter) => BatchSpanProcessor,
    private readonly logger: Logger,
    registry: Registry,
  ) {
    this.dropped = counterIn<'reason'>(registry, {
      name: 'trace_spans_dropped_total',
      help: 'Spans that this process dropped because the queue was full or the export failed.',
      labelNames: ['reason'],
    });
    this.batches = batchesOver({
      export: (spans, done) => {
        this.waiting -= spans.length;
        exporter.export(spans, (result) => {
          this.report(result, spans.length);
          done(result);
        });
      },
      shutdown: () => exporter.shutdown(),
      forceFlush: () => exporter.forceFlush?.() ?? Promise.resolve(),
    });
  }

  onStart(): void {
    // A span is counted at its end.
  }

  onEnd(span: ReadableSpan): void {
    if ((span.spanContext().traceFlags & 1) === 0) return;
    if (this.waiting < MAX_WAITING_SPANS) {
      this.waiting++;
      this.batches.onEnd(span);
    } else {
      this.dropped.inc({ reason: 'queue_full' });
    }
  }

  forceFlush(): Promise<void> {
    return this.batches.forceFlush();
  }

  shutdown(): Promise<void> {
    return this.batches.shutdown();
  }

  private report({ code, error }: ExportResult, spans: number): void {
    const hasFailed = Number(code) !== SUCCESS;
    if (hasFailed) {
      this.dropped.inc({ reason: 'export_failed' }, spans);
      if (!this.isFailing) this.logger.warn({ event: 'tracing.export_failed', spans, err: error }, 'dropped');
    } else if (this.isFailing) this.logger.info({ event: 'tracing.export_works' }, 'span export recovered');
    this.isFailing = hasFailed;
  }
}
