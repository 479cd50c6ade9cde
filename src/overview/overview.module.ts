import { Module } from '@nestjs/common';
import { WalletModule } from '../wallet/index.js';
import { WebhooksCoreModule, WebhooksPortalModule } from '../webhooks/index.js';
import { ActivityRepository } from './activity.repository.js';
import { FindAttention } from './find-attention.js';
import { GoLiveChecklist } from './go-live-checklist.js';
import { Overview } from './overview.js';
import { OverviewController } from './portal/overview.controller.js';
import { RollUpActivity } from './worker/roll-up-activity.js';

/** The overview, on the portal's port. */
@Module({
  imports: [WalletModule, WebhooksCoreModule, WebhooksPortalModule],
  providers: [ActivityRepository, Overview, FindAttention, GoLiveChecklist],
  controllers: [OverviewController],
})
export class OverviewPortalModule {}

/** Counts orders and spending in the worker. */
@Module({ providers: [ActivityRepository, RollUpActivity] })
export class OverviewWorkerModule {}
