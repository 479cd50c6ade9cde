import { Module } from '@nestjs/common';
import { AlertsModule } from '../alerts/index.js';
import { AuditModule } from '../audit/index.js';
import { CatalogModule } from '../catalog/index.js';
import { EventsModule } from '../events/index.js';
import { PartnersModule } from '../partners/index.js';
import { ProvidersModule } from '../providers/index.js';
import { ProvidersController } from './admin/providers.controller.js';
import { CatalogHistoryRepository } from './catalog-history.repository.js';
import { CatalogSyncsRepository } from './catalog-syncs.repository.js';
import { LiveCatalogRepository } from './live-catalog.repository.js';
import { RefreshCatalog, ReportCostOverrun } from './report-cost-overrun.js';
import { TopupFitsRepository } from './topup-fits.repository.js';
import { AnnounceChanges } from './worker/announce-changes.js';
import { ProviderGauges } from './worker/provider-gauges.js';
import { RefreshTopupFits } from './worker/refresh-topup-fits.js';
import { StoreList } from './worker/store-list.js';
import { StorePackages } from './worker/store-packages.js';
import { SyncCatalog } from './worker/sync-catalog.js';
import { CatalogSyncJobs } from './worker/catalog-sync-jobs.js';

/** For code that discovers that the live catalog is out of date. */
@Module({
  imports: [AlertsModule],
  providers: [
    CatalogSyncsRepository,
    CatalogHistoryRepository,
    TopupFitsRepository,
    RefreshCatalog,
    ReportCostOverrun,
  ],
  exports: [RefreshCatalog, ReportCostOverrun, CatalogHistoryRepository],
})
export class CatalogSyncModule {}

/** Requests for a synchronization and the provider list, on the admin port. */
@Module({
  imports: [ProvidersModule, AuditModule],
  providers: [CatalogSyncsRepository],
  controllers: [ProvidersController],
})
export class CatalogSyncAdminModule {}

/** The jobs; only the worker role imports it. */
@Module({
  imports: [CatalogModule, EventsModule, PartnersModule, ProvidersModule],
  providers: [
    AnnounceChanges,
    CatalogSyncsRepository,
    LiveCatalogRepository,
    TopupFitsRepository,
    StoreList,
    StorePackages,
    SyncCatalog,
    RefreshTopupFits,
    CatalogSyncJobs,
    ProviderGauges,
  ],
})
export class CatalogSyncWorkerModule {}
