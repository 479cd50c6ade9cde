import { Injectable, type OnApplicationBootstrap, type OnModuleInit } from '@nestjs/common';
import { Alerts, ReviewSweeps } from '../../alerts/index.js';
import { mapPage } from '../../common/page.js';
import type { Tx } from '../../infra/database/index.js';
import { PlacementGuard, type ProviderPlacement } from '../../providers/index.js';
import { OrdersNeedingReview } from '../orders-needing-review.js';
import { OrdersRepository } from '../orders.repository.js';

/**
 * Raises `order.needs_review` once for each order, and for each cancellation, that the provider owes an answer, and for
 * each purchase or return that is placed twice (D22).
 */
@Injectable()
export class ReviewAlerts implements OnModuleInit, OnApplicationBootstrap {
  constructor(
    private readonly reviews: OrdersNeedingReview,
    private readonly sweeps: ReviewSweeps,
    private readonly alerts: Alerts,
    private readonly orders: OrdersRepository,
    private readonly guard: PlacementGuard,
  ) {}

  onModuleInit(): void {
    this.guard.onRepeat('order', (tx, placement) => this.tellOfRepeat(tx, placement));
    this.guard.onRepeat('cancel', (tx, placement) => this.tellOfRepeat(tx, placement));
  }

  onApplicationBootstrap(): void {
    this.sweeps.start('orders.reviews', async (options) =>
      mapPage(await this.reviews.listLate(options), ({ order, since }) => ({
        type: 'order.needs_review' as const,
        partnerId: order.partnerId,
        subjectId: order.id,
        details: { status: order.status, provider: order.provider, since: since.toISOString() },
        // With its beginning: an order that was not canceled may be canceled again, and wait again.
        onceKey: `${order.status}:${since.toISOString()}`,
      })),
    );
  }

  /** The provider may charge, or give back, twice, so support knows before the second placement leaves (D19). */
  private async tellOfRepeat(
    tx: Tx,
    { provider, operation, key, reference }: ProviderPlacement,
  ): Promise<void> {
    const order = await this.orders.getByProviderReference(tx, reference);
    await this.alerts.raise(tx, {
      type: 'order.needs_review',
      partnerId: order.partnerId,
      subjectId: order.id,
      details: { what: 'placed_again', operation, provider, placement_key: key },
      onceKey: `placed_again:${operation}:${key}`,
    });
  }
}
