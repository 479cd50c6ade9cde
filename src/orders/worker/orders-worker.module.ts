import { Module } from '@nestjs/common';
import { AlertsModule } from '../../alerts/index.js';
import { EsimsModule } from '../../esims/index.js';
import { ProvidersModule } from '../../providers/index.js';
import { WalletModule } from '../../wallet/index.js';
import { OrdersModule } from '../orders.module.js';
import { FulfilOrder } from './fulfil-order.js';
import { OrderWorker } from './order-worker.js';
import { OrdersNeedingReview } from '../orders-needing-review.js';
import { ReviewAlerts } from './review-alerts.js';
import { SettleCancellation } from './settle-cancellation.js';

@Module({
  imports: [OrdersModule, EsimsModule, ProvidersModule, WalletModule, AlertsModule],
  providers: [FulfilOrder, SettleCancellation, OrderWorker, OrdersNeedingReview, ReviewAlerts],
})
export class OrdersWorkerModule {}
