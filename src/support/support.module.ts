import { Module } from '@nestjs/common';
import { AlertsModule } from '../alerts/index.js';
import { AuditModule } from '../audit/index.js';
import { EsimsModule } from '../esims/index.js';
import { OrdersModule } from '../orders/index.js';
import { PartnersModule } from '../partners/index.js';
import { ProvidersModule } from '../providers/index.js';
import { TopupsModule } from '../topups/index.js';
import { PartnerOrdersController, PartnerTopupsController } from './admin/partner-lists.controller.js';
import { OrderReviewsController, TopupReviewsController } from './admin/reviews.controller.js';
import { InspectProviderOrder } from './inspect-provider-order.js';
import { InspectProviderTopup } from './inspect-provider-topup.js';
import { OrdersNeedingReview, TopupsNeedingReview } from './needs-review.js';
import { ResolveOrder } from './resolve-order.js';
import { ResolveTopup } from './resolve-topup.js';
import { ReviewAlerts } from './worker/review-alerts.js';
import { ReviewMetrics } from './worker/review-metrics.js';

/**
 * On the admin port: a partner's orders and top-ups, those that need review, the provider's view, and support's
 * decision.
 */
@Module({
  imports: [
    AlertsModule,
    PartnersModule,
    AuditModule,
    EsimsModule,
    ProvidersModule,
    OrdersModule,
    TopupsModule,
  ],
  providers: [
    OrdersNeedingReview,
    TopupsNeedingReview,
    InspectProviderOrder,
    InspectProviderTopup,
    ResolveOrder,
    ResolveTopup,
  ],
  controllers: [
    PartnerOrdersController,
    OrderReviewsController,
    PartnerTopupsController,
    TopupReviewsController,
  ],
})
export class SupportAdminModule {}

/** Alerts about purchases that need review, in the worker. */
@Module({
  imports: [AlertsModule, OrdersModule, ProvidersModule, TopupsModule],
  providers: [OrdersNeedingReview, TopupsNeedingReview, ReviewAlerts, ReviewMetrics],
})
export class SupportWorkerModule {}
