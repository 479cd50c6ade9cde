import { Module } from '@nestjs/common';
import { EsimsModule } from '../../esims/index.js';
import { ProvidersModule } from '../../providers/index.js';
import { LifecycleModule } from '../lifecycle.module.js';
import { EsimPoller } from './esim-poller.js';
import { ReadEsimBatch } from './read-esim-batch.js';

@Module({ imports: [LifecycleModule, EsimsModule, ProvidersModule], providers: [ReadEsimBatch, EsimPoller] })
export class LifecycleWorkerModule {}
