import { type DynamicModule, Global, Module } from '@nestjs/common';
import { Counter, Gauge, Histogram, type Registry } from 'prom-client';

/** Injection token of the process's registry: `@Inject(METRICS) registry: Registry`. `/metrics` shows it (D3). */
export const METRICS = Symbol('METRICS');

interface MetricText<Label extends string> {
  readonly name: string;
  readonly help: string;
  /** Values must be few and come from the code: never a partner, an endpoint or another caller-chosen value. */
  readonly labelNames?: readonly Label[];
}

/** The registry's counter of this name, created on first use: the apps of one process share it. */
export function counterIn<Label extends string = never>(
  registry: Registry,
  { name, help, labelNames = [] }: MetricText<Label>,
): Counter<Label> {
  const known = registry.getSingleMetric(name) as Counter<Label> | undefined;
  return known ?? new Counter<Label>({ name, help, labelNames: [...labelNames], registers: [registry] });
}

/** Like `counterIn`. @param buckets upper bounds, in the unit of the metric's name */
export function histogramIn<Label extends string = never>(
  registry: Registry,
  { name, help, labelNames = [], buckets }: MetricText<Label> & { readonly buckets: readonly number[] },
): Histogram<Label> {
  const known = registry.getSingleMetric(name) as Histogram<Label> | undefined;
  if (known) return known;
  return new Histogram<Label>({
    name,
    help,
    labelNames: [...labelNames],
    buckets: [...buckets],
    registers: [registry],
  });
}

/** Like `counterIn`. */
export function gaugeIn<Label extends string = never>(
  registry: Registry,
  { name, help, labelNames = [] }: MetricText<Label>,
): Gauge<Label> {
  const known = registry.getSingleMetric(name) as Gauge<Label> | undefined;
  return known ?? new Gauge<Label>({ name, help, labelNames: [...labelNames], registers: [registry] });
}

/** Histogram buckets in seconds, from a cached response to a timed-out call. */
export const LATENCY_SECONDS = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30] as const;

/** Names of batched work; `observeBatches` counts it. */
export type BatchName = 'api_calls' | 'install_openings' | 'key_checks' | 'webhook_outcomes';

/** Returns a function that records the size of each batch of `batch` in `batch_items`. */
export function observeBatches(registry: Registry, batch: BatchName): (items: number) => void {
  const sizes = histogramIn(registry, {
    name: 'batch_items',
    help: 'Items per batch: key checks, call log rows, attempt outcomes or openings of install links.',
    labelNames: ['batch'],
    buckets: [1, 2, 5, 10, 25, 50, 100, 250, 500, 1_000, 2_000],
  });
  return (items) => sizes.observe({ batch }, items);
}

@Global()
@Module({})
export class MetricsModule {
  static of(registry: Registry): DynamicModule {
    return {
      module: MetricsModule,
      providers: [{ provide: METRICS, useValue: registry }],
      exports: [METRICS],
    };
  }
}
