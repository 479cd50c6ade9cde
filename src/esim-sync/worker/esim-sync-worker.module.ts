import { Module } from '@nestjs/common';
import { EsimsModule } from '../../esims/index.js';
import { ProvidersModule } from '../../providers/index.js';
import { EsimSyncModule } from '../esim-sync.module.js';
import { EsimPoller } from './esim-poller.js';
import { PollEsimBatch } from './poll-esim-batch.js';

@Module({ imports: [EsimSyncModule, EsimsModule, ProvidersModule], providers: [PollEsimBatch, EsimPoller] })
export class EsimSyncWorkerModule {}
