import { Inject, Injectable } from '@nestjs/common';
import type { Registry } from 'prom-client';
import { showReading } from '../../infra/kept-reading.js';
import { METRICS } from '../../infra/metrics.js';
import { OrdersNeedingReview, TopupsNeedingReview } from '../needs-review.js';

/** Number of orders and top-ups that wait for support, in the whole database. */
@Injectable()
export class ReviewMetrics {
  constructor(@Inject(METRICS) registry: Registry, orders: OrdersNeedingReview, topups: TopupsNeedingReview) {
    showReading(
      registry,
      {
        name: 'orders_needing_review',
        help: 'Orders in GET /internal/v1/orders/needs-review, counted up to 1,000.',
      },
      () => orders.count(),
    );
    showReading(
      registry,
      {
        name: 'topups_needing_review',
        help: 'Top-ups in GET /internal/v1/topups/needs-review, counted up to 1,000.',
      },
      () => topups.count(),
    );
  }
}
