import { Injectable, type OnApplicationBootstrap, type OnModuleInit } from '@nestjs/common';
import { Alerts, ReviewSweeps } from '../../alerts/index.js';
import { mapPage } from '../../common/page.js';
import type { Tx } from '../../infra/database/index.js';
import { OrdersRepository } from '../../orders/index.js';
import { PlacementGuard, type ProviderPlacement } from '../../providers/index.js';
import { TopupsRepository } from '../../topups/index.js';
import { OrdersNeedingReview, TopupsNeedingReview } from '../needs-review.js';

/**
 * Raises `order.needs_review` once for each order, and for each cancellation, that the provider owes an answer, and for
 * each purchase or return that is placed twice (D22).
 */
@Injectable()
export class OrderReviewAlerts implements OnModuleInit, OnApplicationBootstrap {
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

/** Raises `topup.needs_review` once for each top-up that the provider owes an answer, or that is placed twice (D22). */
@Injectable()
export class TopupReviewAlerts implements OnModuleInit, OnApplicationBootstrap {
  constructor(
    private readonly reviews: TopupsNeedingReview,
    private readonly sweeps: ReviewSweeps,
    private readonly alerts: Alerts,
    private readonly topups: TopupsRepository,
    private readonly guard: PlacementGuard,
  ) {}

  onModuleInit(): void {
    this.guard.onRepeat('topup', (tx, placement) => this.tellOfRepeat(tx, placement));
  }

  onApplicationBootstrap(): void {
    this.sweeps.start('topups.reviews', async (options) =>
      mapPage(await this.reviews.listLate(options), (topup) => ({
        type: 'topup.needs_review' as const,
        partnerId: topup.partnerId,
        subjectId: topup.id,
        details: {
          status: topup.status,
          provider: topup.provider,
          esim_id: topup.esimId,
          since: topup.createdAt.toISOString(),
        },
        // A top-up waits once only, unlike an order, which may be canceled twice.
        onceKey: topup.status,
      })),
    );
  }

  /** The provider may charge twice for it, so support knows before the second placement leaves (D19). */
  private async tellOfRepeat(tx: Tx, { provider, reference }: ProviderPlacement): Promise<void> {
    const topup = await this.topups.getByProviderReference(tx, reference);
    await this.alerts.raise(tx, {
      type: 'topup.needs_review',
      partnerId: topup.partnerId,
      subjectId: topup.id,
      details: { what: 'placed_again', provider, esim_id: topup.esimId },
      onceKey: 'placed_again',
    });
  }
}
