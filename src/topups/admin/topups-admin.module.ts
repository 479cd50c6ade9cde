import { Module } from '@nestjs/common';
import { AuditModule } from '../../audit/index.js';
import { EsimsModule } from '../../esims/index.js';
import { PartnersModule } from '../../partners/index.js';
import { ProvidersModule } from '../../providers/index.js';
import { HearUpstream } from '../hear-upstream.js';
import { ReconcileTopup } from '../reconcile-topup.js';
import { TopupsModule } from '../topups.module.js';
import { TopupsNeedingReview } from '../topups-needing-review.js';
import { PartnerTopupsController } from './partner-topups.controller.js';
import { TopupReviewsController } from './topup-reviews.controller.js';

@Module({
  imports: [PartnersModule, AuditModule, EsimsModule, ProvidersModule, TopupsModule],
  providers: [HearUpstream, ReconcileTopup, TopupsNeedingReview],
  controllers: [PartnerTopupsController, TopupReviewsController],
})
export class TopupsAdminModule {}
