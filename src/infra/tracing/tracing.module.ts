import { type DynamicModule, Global, Module } from '@nestjs/common';
import type { Logger } from 'pino';
import type { Registry } from 'prom-client';
import type { AppConfig } from '../../config/index.js';
import { NO_TRACER, Tracer } from './tracer.js';

export interface TracingSettings {
  readonly config: Pick<AppConfig, 'tracing'>;
  /** `api`, `worker`, …: named in every span. */
  readonly role: string;
  readonly logger: Logger;
  readonly metrics: Registry;
}

/** The process's tracer. Loads OpenTelemetry only if there is an endpoint (D53). */
export async function openTracer({ config, role, logger, metrics }: TracingSettings): Promise<Tracer> {
  if (config.tracing === null) return NO_TRACER;
  const { OtlpTracer } = await import('./otlp/otlp-tracer.js');
  return new OtlpTracer({ ...config.tracing, role, logger, metrics });
}

@Global()
@Module({})
export class TracingModule {
  static of(tracer: Tracer): DynamicModule {
    return { module: TracingModule, providers: [{ provide: Tracer, useValue: tracer }], exports: [Tracer] };
  }
}
