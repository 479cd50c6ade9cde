import { Module } from '@nestjs/common';
import { AuditModule } from '../audit/index.js';
import { EsimsModule } from '../esims/index.js';
import { EventsModule } from '../events/index.js';
import { OrdersModule } from '../orders/index.js';
import { WalletModule } from '../wallet/index.js';
import { RefundReviewsController } from './admin/refund-reviews.controller.js';
import { RefundRequestsController } from './api/refund-requests.controller.js';
import { DecideRefund } from './decide-refund.js';
import { PortalRefundRequestsController } from './portal/portal-refund-requests.controller.js';
import { RefundFacts } from './refund-facts.js';
import { RefundRequestsRepository } from './refund-requests.repository.js';
import { RequestRefund } from './request-refund.js';

@Module({
  imports: [AuditModule, EsimsModule, OrdersModule],
  providers: [RefundRequestsRepository, RequestRefund],
  exports: [RefundRequestsRepository, RequestRefund],
})
export class RefundsModule {}

/** A partner's refund requests. */
@Module({ imports: [RefundsModule], controllers: [RefundRequestsController] })
export class RefundsApiModule {}

/** A partner's refund requests, on the portal's port. */
@Module({ imports: [RefundsModule], controllers: [PortalRefundRequestsController] })
export class RefundsPortalModule {}

/** The portal team's queue of refund requests, and its decisions. */
@Module({
  imports: [RefundsModule, AuditModule, EsimsModule, EventsModule, OrdersModule, WalletModule],
  providers: [DecideRefund, RefundFacts],
  controllers: [RefundReviewsController],
})
export class RefundsAdminModule {}
