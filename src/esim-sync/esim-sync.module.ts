import { type DynamicModule, Module } from '@nestjs/common';
import type { Logger } from 'pino';
import { EsimsModule } from '../esims/index.js';
import { LoggerModule } from '../infra/logging.js';
import { OrdersModule } from '../orders/index.js';
import { ProvidersModule } from '../providers/index.js';
import { TopupsModule } from '../topups/index.js';
import { EsimActionsRepository } from './esim-actions.repository.js';
import { EsimPollsRepository } from './esim-polls.repository.js';
import { CallbacksController } from './callbacks/callbacks.controller.js';
import { type CallbackTaker, PollNotifier, TakeCallback } from './callbacks/take-callback.js';
import { EsimActionWorker } from './worker/esim-action-worker.js';
import { EsimPoller } from './worker/esim-poller.js';
import { PollEsimBatch } from './worker/poll-esim-batch.js';

@Module({
  imports: [EsimsModule, OrdersModule, ProvidersModule, TopupsModule],
  providers: [EsimPollsRepository, PollNotifier, TakeCallback],
  exports: [EsimPollsRepository, PollNotifier, TakeCallback],
})
class EsimSyncModule {}

@Module({
  imports: [EsimSyncModule, EsimsModule, ProvidersModule],
  providers: [PollEsimBatch, EsimPoller, EsimActionsRepository, EsimActionWorker],
})
export class EsimSyncWorkerModule {}

/** The routes for callbacks. `take` belongs to this process's worker, so that a hint reaches its poller at once. */
@Module({ controllers: [CallbacksController] })
export class CallbacksModule {
  static of(take: CallbackTaker, logger: Logger): DynamicModule {
    return {
      module: CallbacksModule,
      imports: [LoggerModule.of(logger)],
      providers: [{ provide: TakeCallback, useValue: take }],
    };
  }
}
