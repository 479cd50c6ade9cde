import {
  ROOT_CONTEXT,
  type Span as OtelSpan,
  SpanKind,
  SpanStatusCode,
  trace,
  type Tracer as OtelTracer,
} from '@opentelemetry/api';
import { OTLPTraceExporter } from '@opentelemetry/exporter-trace-otlp-http';
import { defaultResource, resourceFromAttributes } from '@opentelemetry/resources';
import {
  AlwaysOffSampler,
  AlwaysOnSampler,
  BatchSpanProcessor,
  type IdGenerator,
  ParentBasedSampler,
  RandomIdGenerator,
  type Sampler,
  type SpanExporter,
  TraceIdRatioBasedSampler,
  TracerProvider,
} from '@opentelemetry/sdk-trace';
import type { Logger } from 'pino';
import type { Registry } from 'prom-client';
import { endsWithin } from '../../../common/time-limit.js';
import type { TracingConfig } from '../../../config/index.js';
import { PACKAGE_ROOT } from '../../package-root.js';
import type { TraceContext } from '../traceparent.js';
import { type Span, type SpanRequest, Tracer } from '../tracer.js';
import { type Concerns, currentConcerns, currentSpan, runWithin } from '../work-context.js';
import { MAX_WAITING_SPANS, SpanQueue } from './span-queue.js';

export interface OtlpTracerSettings extends TracingConfig {
  readonly role: string;
  readonly logger: Logger;
  readonly metrics: Registry;
}

/** A hanging collector loses its spans, but does not delay the next batch for long. */
const EXPORT_TIMEOUT_MS = 5_000;
const SEND_EVERY_MS = 1_000;
const MAX_BATCH = 512;

const KINDS: Readonly<Record<SpanRequest['kind'], SpanKind>> = {
  server: SpanKind.SERVER,
  consumer: SpanKind.CONSUMER,
  client: SpanKind.CLIENT,
};

const CONCERN_NAMES: Readonly<Record<keyof Concerns, string>> = {
  requestId: 'esim.request_id',
  orderId: 'esim.order_id',
  topupId: 'esim.topup_id',
  deliveryId: 'esim.delivery_id',
  endpointId: 'esim.endpoint_id',
};

/**
 * Creates spans with OpenTelemetry's SDK and sends them as OTLP over HTTP in JSON. Nothing is registered globally, so
 * several tracers may live in one process, and nothing is patched. The exporter reads certificates and compression from
 * the variables that OpenTelemetry defines.
 */
export class OtlpTracer extends Tracer {
  readonly isOn = true;
  private readonly provider: TracerProvider;
  private readonly tracer: OtelTracer;
  private readonly ids = new ChosenIds();

  constructor({ url, headers, serviceName, role, logger, metrics, ...sampling }: OtlpTracerSettings) {
    super();
    const exporter = new OTLPTraceExporter({
      url,
      headers: { ...headers },
      timeoutMillis: EXPORT_TIMEOUT_MS,
    });
    const batchesOver = (counted: SpanExporter): BatchSpanProcessor =>
      new BatchSpanProcessor({
        exporter: counted,
        maxQueueSize: MAX_WAITING_SPANS,
        maxExportBatchSize: MAX_BATCH,
        scheduledDelayMillis: SEND_EVERY_MS,
        exportTimeoutMillis: EXPORT_TIMEOUT_MS * 2,
      });
    this.provider = new TracerProvider({
      resource: defaultResource().merge(
        resourceFromAttributes({
          'service.name': serviceName,
          'service.version': PACKAGE_ROOT.version,
          'service.instance.id': `${role}-${process.pid}`,
          'esim.role': role,
        }),
      ),
      sampler: samplerOf(sampling),
      idGenerator: this.ids,
      spanProcessors: [new SpanQueue(exporter, batchesOver, logger, metrics)],
    });
    this.tracer = this.provider.getTracer('partner-esim-service', PACKAGE_ROOT.version);
  }

  start({ name, kind, parent, links = [], concerns, attributes, startedAt, ids }: SpanRequest): Span {
    const above = parent === undefined ? currentSpan() : parent;
    const context =
      above === null
        ? ROOT_CONTEXT
        : trace.setSpanContext(ROOT_CONTEXT, { ...toOtel(above), isRemote: parent !== undefined });
    const options = {
      kind: KINDS[kind],
      attributes: { ...attributes, ...namesOf({ ...currentConcerns(), ...concerns }) },
      links: links.filter((link) => link !== null).map((link) => ({ context: toOtel(link) })),
      ...(startedAt === undefined ? {} : { startTime: startedAt }),
    };
    return new OtlpSpan(this.ids.choosing(ids, () => this.tracer.startSpan(name, options, context)));
  }

  async inSpan<T>(request: SpanRequest, work: (span: Span) => Promise<T>): Promise<T> {
    const span = this.start(request);
    try {
      return await runWithin(span.context, request.concerns, () => work(span));
    } catch (error) {
      span.fail(error instanceof Error ? error.name : typeof error);
      throw error;
    } finally {
      span.end();
    }
  }

  async close(withinMs: number): Promise<void> {
    await endsWithin(this.provider.shutdown(), withinMs).catch(() => false);
  }
}

class OtlpSpan implements Span {
  readonly context: TraceContext;

  constructor(private readonly span: OtelSpan) {
    const { traceId, spanId, traceFlags } = span.spanContext();
    this.context = { traceId, spanId, sampled: (traceFlags & 1) === 1 };
  }

  set(attributes: Parameters<Span['set']>[0]): void {
    for (const [name, value] of Object.entries(attributes))
      if (value !== null && value !== undefined) this.span.setAttribute(name, value);
  }

  fail(errorType: string): void {
    this.span.setAttribute('error.type', errorType);
    this.span.setStatus({ code: SpanStatusCode.ERROR });
  }

  end(): void {
    this.span.end();
  }
}

/** Generates random ids, except for a span whose ids were chosen. `startSpan` requests both ids before it returns. */
class ChosenIds implements IdGenerator {
  private readonly random = new RandomIdGenerator();
  private chosen: SpanRequest['ids'];

  choosing<T>(ids: SpanRequest['ids'], start: () => T): T {
    this.chosen = ids;
    try {
      return start();
    } finally {
      this.chosen = undefined;
    }
  }

  readonly generateTraceId = (): string => this.chosen?.traceId ?? this.random.generateTraceId();
  readonly generateSpanId = (): string => this.chosen?.spanId ?? this.random.generateSpanId();
}

function samplerOf({ sampler, ratio }: Pick<TracingConfig, 'sampler' | 'ratio'>): Sampler {
  const roots = {
    always_on: () => new AlwaysOnSampler(),
    always_off: () => new AlwaysOffSampler(),
    traceidratio: () => new TraceIdRatioBasedSampler(ratio),
  };
  type Root = keyof typeof roots;
  if (!sampler.startsWith('parentbased_')) return roots[sampler as Root]();
  return new ParentBasedSampler({ root: roots[sampler.slice('parentbased_'.length) as Root]() });
}

function toOtel({ traceId, spanId, sampled }: TraceContext) {
  return { traceId, spanId, traceFlags: sampled ? 1 : 0 };
}

function namesOf(concerns: Concerns): Record<string, string> {
  const named = Object.entries(concerns) as [keyof Concerns, string | undefined][];
  return Object.fromEntries(
    named.flatMap(([name, value]) => (value === undefined ? [] : [[CONCERN_NAMES[name], value]])),
  );
}
