import { Module } from '@nestjs/common';
import { EsimsModule } from '../esims/index.js';
import { EventsModule } from '../events/index.js';
import { OrdersModule } from '../orders/index.js';
import { RefundsModule } from '../refunds/index.js';
import { TopupsModule } from '../topups/index.js';
import { WebhooksCoreModule } from '../webhooks/index.js';
import {
  AnyOrderController,
  LookupsController,
  PortalOrderPageController,
} from './admin/lookups.controller.js';
import { OrderPages } from './order-pages.js';

@Module({
  imports: [EsimsModule, EventsModule, OrdersModule, RefundsModule, TopupsModule, WebhooksCoreModule],
  providers: [OrderPages],
  exports: [OrderPages, EsimsModule, TopupsModule],
})
class LookupsModule {}

/** Objects of any partner by id, for support. */
@Module({ imports: [LookupsModule], controllers: [AnyOrderController, LookupsController] })
export class LookupsAdminModule {}

/** The page of an order, on the portal's port. */
@Module({ imports: [LookupsModule], controllers: [PortalOrderPageController] })
export class LookupsPortalModule {}
