import { Module } from '@nestjs/common';
import { CallLogRepository } from '../call-log/index.js';
import { EsimsModule } from '../esims/index.js';
import { EventsModule } from '../events/index.js';
import { InstallLinksModule } from '../install-links/index.js';
import { OrdersModule } from '../orders/index.js';
import { PartnersModule } from '../partners/index.js';
import { RefundsModule } from '../refunds/index.js';
import { TopupsModule } from '../topups/index.js';
import { WebhooksCoreModule } from '../webhooks/index.js';
import {
  AnyOrderController,
  LookupsController,
  PortalOrderPageController,
} from './admin/lookups.controller.js';
import { PortalSearchController, SearchController } from './admin/search.controller.js';
import { OrderPages } from './order-pages.js';
import { Search } from './search.js';

@Module({
  imports: [
    EsimsModule,
    EventsModule,
    InstallLinksModule,
    OrdersModule,
    PartnersModule,
    RefundsModule,
    TopupsModule,
    WebhooksCoreModule,
  ],
  providers: [OrderPages, Search, CallLogRepository],
  exports: [OrderPages, Search, EsimsModule, TopupsModule],
})
class LookupsModule {}

/** Objects of any partner by id, and search, for support. */
@Module({ imports: [LookupsModule], controllers: [AnyOrderController, LookupsController, SearchController] })
export class LookupsAdminModule {}

/** The page of an order, and search, on the portal's port. */
@Module({ imports: [LookupsModule], controllers: [PortalOrderPageController, PortalSearchController] })
export class LookupsPortalModule {}
