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

/** A partner's orders and top-ups, what needs review, the provider's view of it, and support's decision, on the admin port. */
@Module({
  imports: [PartnersModule, AuditModule, EsimsModule, ProvidersModule, OrdersModule, TopupsModule],
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

/** Alerts about what needs review, in the worker. */
@Module({
  imports: [AlertsModule, OrdersModule, ProvidersModule, TopupsModule],
  providers: [OrdersNeedingReview, TopupsNeedingReview, ReviewAlerts, ReviewMetrics],
})
export class SupportWorkerModule {}
