import { Module } from '@nestjs/common';
import { EsimsModule } from '../esims/index.js';
import { OrdersModule } from '../orders/index.js';
import { ProvidersModule } from '../providers/index.js';
import { TopupsModule } from '../topups/index.js';
import { EsimPollsRepository } from './esim-polls.repository.js';
import { PollBell } from './poll-bell.js';
import { TakeCallback } from './take-callback.js';

@Module({
  imports: [EsimsModule, OrdersModule, ProvidersModule, TopupsModule],
  providers: [EsimPollsRepository, PollBell, TakeCallback],
  exports: [EsimPollsRepository, PollBell, TakeCallback],
})
export class LifecycleModule {}
