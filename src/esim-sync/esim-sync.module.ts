import { Module } from '@nestjs/common';
import { EsimsModule } from '../esims/index.js';
import { OrdersModule } from '../orders/index.js';
import { ProvidersModule } from '../providers/index.js';
import { TopupsModule } from '../topups/index.js';
import { EsimPollsRepository } from './esim-polls.repository.js';
import { PollNotifier, TakeCallback } from './take-callback.js';
import { EsimPoller } from './worker/esim-poller.js';
import { PollEsimBatch } from './worker/poll-esim-batch.js';

@Module({
  imports: [EsimsModule, OrdersModule, ProvidersModule, TopupsModule],
  providers: [EsimPollsRepository, PollNotifier, TakeCallback],
  exports: [EsimPollsRepository, PollNotifier, TakeCallback],
})
class EsimSyncModule {}

@Module({ imports: [EsimSyncModule, EsimsModule, ProvidersModule], providers: [PollEsimBatch, EsimPoller] })
export class EsimSyncWorkerModule {}
