import { Module } from '@nestjs/common';
import { AlertsModule } from '../alerts/index.js';
import { CatalogModule } from '../catalog/index.js';
import { EsimsModule } from '../esims/index.js';
import { EventsModule } from '../events/index.js';
import { ProvidersModule } from '../providers/index.js';
import { WalletModule } from '../wallet/index.js';
import { CatalogSyncModule } from '../catalog-sync/index.js';
import { CancelOrder } from './cancel-order.js';
import { EndCancellation } from './end-cancellation.js';
import { EndOrder } from './end-order.js';
import { OrderEndingsRepository } from './order-endings.repository.js';
import { OrderJobsRepository } from './order-jobs.repository.js';
import { OrderNotifierModule } from './order-jobs.js';
import { OrdersRepository } from './orders.repository.js';
import { PlaceOrder } from './place-order.js';
import { ReadOrders } from './read-orders.js';

const PROVIDERS = [
  OrdersRepository,
  OrderJobsRepository,
  OrderEndingsRepository,
  PlaceOrder,
  CancelOrder,
  EndOrder,
  EndCancellation,
  ReadOrders,
];

@Module({
  imports: [
    AlertsModule,
    CatalogModule,
    EsimsModule,
    EventsModule,
    ProvidersModule,
    WalletModule,
    CatalogSyncModule,
    OrderNotifierModule,
  ],
  providers: PROVIDERS,
  exports: [...PROVIDERS, OrderNotifierModule],
})
export class OrdersModule {}
