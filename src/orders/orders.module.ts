import { Module } from '@nestjs/common';
import { AlertsModule } from '../alerts/index.js';
import { AuditModule } from '../audit/index.js';
import { CatalogModule } from '../catalog/index.js';
import { EsimsModule } from '../esims/index.js';
import { EventsModule, LongPollingModule } from '../events/index.js';
import { PartnersModule } from '../partners/index.js';
import { ProvidersModule } from '../providers/index.js';
import { PurchaseMetricsModule } from '../purchases/index.js';
import { WalletModule } from '../wallet/index.js';
import { CatalogSyncModule } from '../catalog-sync/index.js';
import { OrdersController } from './api/orders.controller.js';
import { ReplacementsController } from './api/replacements.controller.js';
import { CancelOrder, CompleteCancellation } from './cancel-order.js';
import { CompleteOrder } from './complete-order.js';
import { OrderJobsRepository, OrderNotifierModule } from './order-jobs.repository.js';
import { OrdersRepository, ReadOrders } from './orders.repository.js';
import { PastOrdersRepository } from './past-orders.repository.js';
import { PlaceOrder } from './place-order.js';
import { PortalOrdersController } from './portal/portal-orders.controller.js';
import { PortalOrderChangesController } from './portal/portal-order-changes.controller.js';
import { ReplaceEsim } from './replace-esim.js';
import { StartReplacement } from './start-replacement.js';
import { FulfillOrder } from './worker/fulfill-order.js';
import { OrderWorker } from './worker/order-worker.js';
import { SettleCancellation } from './worker/settle-cancellation.js';

const PROVIDERS = [
  OrdersRepository,
  PastOrdersRepository,
  OrderJobsRepository,
  PlaceOrder,
  CancelOrder,
  CompleteOrder,
  CompleteCancellation,
  StartReplacement,
  ReplaceEsim,
  ReadOrders,
];

@Module({
  imports: [
    AlertsModule,
    CatalogModule,
    EsimsModule,
    EventsModule,
    PartnersModule,
    ProvidersModule,
    WalletModule,
    CatalogSyncModule,
    OrderNotifierModule,
  ],
  providers: PROVIDERS,
  exports: [...PROVIDERS, OrderNotifierModule],
})
export class OrdersModule {}

@Module({
  imports: [OrdersModule, LongPollingModule],
  controllers: [OrdersController, ReplacementsController],
})
export class OrdersApiModule {}

/** A partner's orders, on the portal's port. */
@Module({
  imports: [OrdersModule, EsimsModule, AuditModule],
  controllers: [PortalOrdersController, PortalOrderChangesController],
})
export class OrdersPortalModule {}

/** Provisions and cancels orders in the worker. */
@Module({
  imports: [OrdersModule, EsimsModule, ProvidersModule, PurchaseMetricsModule],
  providers: [FulfillOrder, SettleCancellation, OrderWorker],
})
export class OrdersWorkerModule {}
