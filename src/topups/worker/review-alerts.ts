import { Injectable, type OnApplicationBootstrap, type OnModuleInit } from '@nestjs/common';
import { Alerts, ReviewSweeps } from '../../alerts/index.js';
import { mapPage } from '../../common/page.js';
import type { Tx } from '../../infra/database/index.js';
import { PlacementGuard, type ProviderPlacement } from '../../providers/index.js';
import { TopupsNeedingReview } from '../topups-needing-review.js';
import { TopupsRepository } from '../topups.repository.js';

/** Raises `topup.needs_review` once for each top-up that the provider owes an answer, or that is placed twice (D22). */
@Injectable()
export class ReviewAlerts implements OnModuleInit, OnApplicationBootstrap {
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
