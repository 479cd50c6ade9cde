import { Injectable, type OnApplicationBootstrap, type OnModuleInit } from '@nestjs/common';
import { type AlertEntity, Alerts, EndedAlerts, ReviewSweeps } from '../../alerts/index.js';
import { mapPage } from '../../common/page.js';
import { OrdersRepository } from '../../orders/index.js';
import { PlacementGuard } from '../../providers/index.js';
import { TopupsRepository } from '../../topups/index.js';
import { endsWithPurchase, OrdersNeedingReview, TopupsNeedingReview } from '../needs-review.js';

/**
 * Raises `order.needs_review` and `topup.needs_review` once for each order, cancellation and top-up whose provider
 * result is overdue, and for each purchase or cancellation that is placed twice (D22).
 */
@Injectable()
export class ReviewAlerts implements OnModuleInit, OnApplicationBootstrap {
  constructor(
    private readonly ordersInReview: OrdersNeedingReview,
    private readonly topupsInReview: TopupsNeedingReview,
    private readonly sweeps: ReviewSweeps,
    private readonly alerts: Alerts,
    private readonly ended: EndedAlerts,
    private readonly orders: OrdersRepository,
    private readonly topups: TopupsRepository,
    private readonly guard: PlacementGuard,
  ) {}

  /** The provider may charge or refund twice, so support is alerted before the second placement is sent (D19). */
  onModuleInit(): void {
    for (const kind of ['order', 'cancel'] as const)
      this.guard.onRepeat(kind, async (tx, { provider, operation, key, reference }) => {
        const { id: subjectId, partnerId } = await this.orders.getByProviderReference(tx, reference);
        const details = { what: 'placed_again', operation, provider, placement_key: key };
        const onceKey = `placed_again:${operation}:${key}`;
        await this.alerts.raise(tx, { type: 'order.needs_review', partnerId, subjectId, details, onceKey });
      });
    this.guard.onRepeat('topup', async (tx, { provider, reference }) => {
      const topup = await this.topups.getByProviderReference(tx, reference);
      const { id: subjectId, partnerId, esimId } = topup;
      const details = { what: 'placed_again', provider, esim_id: esimId };
      const onceKey = 'placed_again';
      await this.alerts.raise(tx, { type: 'topup.needs_review', partnerId, subjectId, details, onceKey });
    });
  }

  onApplicationBootstrap(): void {
    this.sweeps.start('orders.reviews', async (options) =>
      mapPage(await this.ordersInReview.listLate(options), ({ purchase: order, since }) => ({
        type: 'order.needs_review' as const,
        partnerId: order.partnerId,
        subjectId: order.id,
        details: { status: order.status, provider: order.provider, since: since.toISOString() },
        // Includes the start time, because an order whose cancellation failed may be canceled again, and wait again.
        onceKey: `${order.status}:${since.toISOString()}`,
      })),
    );
    this.sweeps.start('topups.reviews', async (options) =>
      mapPage(await this.topupsInReview.listLate(options), ({ purchase: topup, since }) => ({
        type: 'topup.needs_review' as const,
        partnerId: topup.partnerId,
        subjectId: topup.id,
        details: {
          status: topup.status,
          provider: topup.provider,
          esim_id: topup.esimId,
          since: since.toISOString(),
        },
        // A top-up waits only once, unlike an order, which may be canceled twice.
        onceKey: topup.status,
      })),
    );
    this.ended.start('order.needs_review', (alerts) => this.selectEnded(alerts, this.ordersInReview));
    this.ended.start('topup.needs_review', (alerts) => this.selectEnded(alerts, this.topupsInReview));
  }

  private async selectEnded(
    alerts: readonly AlertEntity[],
    inReview: OrdersNeedingReview | TopupsNeedingReview,
  ): Promise<readonly AlertEntity[]> {
    const ending = alerts.filter(endsWithPurchase);
    const open = await inReview.selectOpen(ending.map(({ subjectId }) => subjectId));
    return ending.filter(({ subjectId }) => !open.has(subjectId));
  }
}
