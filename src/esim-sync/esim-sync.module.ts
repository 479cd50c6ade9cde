import { Module } from '@nestjs/common';
import { EsimsModule } from '../esims/index.js';
import { OrdersModule } from '../orders/index.js';
import { ProvidersModule } from '../providers/index.js';
import { TopupsModule } from '../topups/index.js';
import { EsimPollsRepository } from './esim-polls.repository.js';
import { PollNotifier } from './poll-notifier.js';
import { TakeCallback } from './take-callback.js';

@Module({
  imports: [EsimsModule, OrdersModule, ProvidersModule, TopupsModule],
  providers: [EsimPollsRepository, PollNotifier, TakeCallback],
  exports: [EsimPollsRepository, PollNotifier, TakeCallback],
})
export class EsimSyncModule {}
