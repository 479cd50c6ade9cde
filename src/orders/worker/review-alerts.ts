import { Injectable, type OnApplicationBootstrap } from '@nestjs/common';
import { ReviewSweeps } from '../../alerts/index.js';
import { mapPage } from '../../common/page.js';
import { OrdersNeedingReview } from '../orders-needing-review.js';

/** Raises `order.needs_review` once for each order, and for each cancellation, that the upstream owes an answer (D22). */
@Injectable()
export class ReviewAlerts implements OnApplicationBootstrap {
  constructor(
    private readonly reviews: OrdersNeedingReview,
    private readonly sweeps: ReviewSweeps,
  ) {}

  onApplicationBootstrap(): void {
    this.sweeps.start('orders.reviews', async (options) =>
      mapPage(await this.reviews.list(options), ({ order, since }) => ({
        type: 'order.needs_review' as const,
        partnerId: order.partnerId,
        subjectId: order.id,
        details: { status: order.status, provider: order.provider, since: since.toISOString() },
        // With its beginning: an order that was not canceled may be canceled again, and wait again.
        onceKey: `${order.status}:${since.toISOString()}`,
      })),
    );
  }
}
