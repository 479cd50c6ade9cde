import { Module } from '@nestjs/common';
import { AlertsModule } from '../../alerts/index.js';
import { EsimsModule } from '../../esims/index.js';
import { ProvidersModule } from '../../providers/index.js';
import { TopupsModule } from '../topups.module.js';
import { TopupsNeedingReview } from '../topups-needing-review.js';
import { AskUpstream } from './ask-upstream.js';
import { FulfilTopup } from './fulfil-topup.js';
import { ReviewAlerts } from './review-alerts.js';
import { TopupWorker } from './topup-worker.js';

@Module({
  imports: [TopupsModule, EsimsModule, ProvidersModule, AlertsModule],
  providers: [AskUpstream, FulfilTopup, TopupWorker, TopupsNeedingReview, ReviewAlerts],
})
export class TopupsWorkerModule {}
