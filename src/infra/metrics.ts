import { type DynamicModule, Global, Module } from '@nestjs/common';
import type { Registry } from 'prom-client';

/** Injection token of the process's registry: `@Inject(METRICS) registry: Registry`. `/metrics` shows it (D3). */
export const METRICS = Symbol('METRICS');

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
