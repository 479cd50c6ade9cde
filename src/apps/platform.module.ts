import { type DynamicModule, Module } from '@nestjs/common';
import { APP_INTERCEPTOR, APP_PIPE, DiscoveryModule } from '@nestjs/core';
import { CallLogModule } from '../call-log/index.js';
import { ConfigModule } from '../config/index.js';
import { CryptoModule } from '../infra/crypto/index.js';
import { DatabaseModule } from '../infra/database/index.js';
import {
  BoundedListsInterceptor,
  EnvelopeInterceptor,
  ListSlotsModule,
  StrictInputInterceptor,
  StrictValidationPipe,
} from '../infra/http/index.js';
import { IdempotencyModule } from '../infra/idempotency/index.js';
import { LoggerModule } from '../infra/logging.js';
import { MetricsModule } from '../infra/metrics.js';
import { TracingModule } from '../infra/tracing/index.js';
import { JobsModule } from '../infra/jobs/index.js';
import { SweepsModule } from '../infra/sweeps.js';
import type { ProcessResources } from './process-resources.js';

/** Foundation of every app of a process: settings, connections, logger, queue, sweeps. */
@Module({})
export class PlatformModule {
  static of(process: ProcessResources): DynamicModule {
    return {
      module: PlatformModule,
      imports: [
        ConfigModule.of(process.config),
        LoggerModule.of(process.logger),
        MetricsModule.of(process.metrics),
        TracingModule.of(process.tracer),
        DatabaseModule.of(process.dataSource, process.edgePool, process.directDataSource, process.contact),
        JobsModule.of(process.queue),
        SweepsModule,
        CryptoModule,
        IdempotencyModule,
      ],
    };
  }
}

/** The request pipeline of the HTTP apps (D5, D9). */
@Module({
  imports: [DiscoveryModule, CallLogModule, ListSlotsModule],
  exports: [DiscoveryModule, CallLogModule],
  providers: [
    { provide: APP_INTERCEPTOR, useClass: EnvelopeInterceptor },
    { provide: APP_INTERCEPTOR, useClass: StrictInputInterceptor },
    { provide: APP_INTERCEPTOR, useClass: BoundedListsInterceptor },
    { provide: APP_PIPE, useClass: StrictValidationPipe },
  ],
})
export class HttpPipelineModule {}
