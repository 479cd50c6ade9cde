import { Injectable, type OnApplicationBootstrap } from '@nestjs/common';
import { ReviewSweeps } from '../../alerts/index.js';
import { mapPage } from '../../common/page.js';
import { TopupsNeedingReview } from '../topups-needing-review.js';

/** Raises `topup.needs_review` once for each top-up that the upstream owes an answer (D22). */
@Injectable()
export class ReviewAlerts implements OnApplicationBootstrap {
  constructor(
    private readonly reviews: TopupsNeedingReview,
    private readonly sweeps: ReviewSweeps,
  ) {}

  onApplicationBootstrap(): void {
    this.sweeps.start('topups.reviews', async (options) =>
      mapPage(await this.reviews.list(options), (topup) => ({
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
}
