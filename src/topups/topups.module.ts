import { Module } from '@nestjs/common';
import { AuditModule } from '../audit/index.js';
import { CatalogModule } from '../catalog/index.js';
import { EsimsModule } from '../esims/index.js';
import { EventsModule, LongPollingModule } from '../events/index.js';
import { PartnersModule } from '../partners/index.js';
import { ProvidersModule } from '../providers/index.js';
import { PurchaseMetricsModule } from '../purchases/index.js';
import { WalletModule } from '../wallet/index.js';
import { CatalogSyncModule } from '../catalog-sync/index.js';
import { AutoTopupsController } from './api/auto-topups.controller.js';
import { TopupsController } from './api/topups.controller.js';
import { AutoTopups } from './auto-topups.js';
import { CompleteTopup } from './complete-topup.js';
import { PlaceTopup } from './place-topup.js';
import { TopupsRepository } from './topups.repository.js';
import { TopupJobsRepository, TopupNotifierModule } from './topup-jobs.repository.js';
import { PortalAutoTopupsController } from './portal/portal-auto-topups.controller.js';
import { PortalTopupsController } from './portal/portal-topups.controller.js';
import { FulfillTopup } from './worker/fulfill-topup.js';
import { PlaceAutoTopups } from './worker/place-auto-topups.js';
import { TopupWorker } from './worker/topup-worker.js';

const PROVIDERS = [TopupsRepository, TopupJobsRepository, PlaceTopup, CompleteTopup, AutoTopups];

@Module({
  imports: [
    CatalogModule,
    EsimsModule,
    EventsModule,
    PartnersModule,
    ProvidersModule,
    WalletModule,
    CatalogSyncModule,
    TopupNotifierModule,
  ],
  providers: PROVIDERS,
  exports: [...PROVIDERS, TopupNotifierModule],
})
export class TopupsModule {}

@Module({ imports: [TopupsModule, LongPollingModule], controllers: [TopupsController, AutoTopupsController] })
export class TopupsApiModule {}

/** A partner's top-ups, on the portal's port. */
@Module({
  imports: [TopupsModule, EsimsModule, AuditModule],
  controllers: [PortalTopupsController, PortalAutoTopupsController],
})
export class TopupsPortalModule {}

/** Buys and applies top-ups in the worker. */
@Module({
  imports: [TopupsModule, EsimsModule, PartnersModule, ProvidersModule, PurchaseMetricsModule],
  providers: [FulfillTopup, PlaceAutoTopups, TopupWorker],
})
export class TopupsWorkerModule {}
