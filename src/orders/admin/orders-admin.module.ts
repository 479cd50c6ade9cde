import { Module } from '@nestjs/common';
import { AuditModule } from '../../audit/index.js';
import { EsimsModule } from '../../esims/index.js';
import { PartnersModule } from '../../partners/index.js';
import { ProvidersModule } from '../../providers/index.js';
import { AskUpstream } from '../ask-upstream.js';
import { OrdersModule } from '../orders.module.js';
import { OrdersNeedingReview } from '../orders-needing-review.js';
import { ReconcileCancellation } from '../reconcile-cancellation.js';
import { ReconcileOrder } from '../reconcile-order.js';
import { ReconcileProvisioning } from '../reconcile-provisioning.js';
import { OrderReviewsController } from './order-reviews.controller.js';
import { PartnerOrdersController } from './partner-orders.controller.js';

@Module({
  imports: [PartnersModule, AuditModule, EsimsModule, ProvidersModule, OrdersModule],
  providers: [AskUpstream, ReconcileOrder, ReconcileProvisioning, ReconcileCancellation, OrdersNeedingReview],
  controllers: [PartnerOrdersController, OrderReviewsController],
})
export class OrdersAdminModule {}
