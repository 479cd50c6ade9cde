import { Module } from '@nestjs/common';
import { AlertsModule } from '../alerts/index.js';
import { AuditModule } from '../audit/index.js';
import { CatalogModule } from '../catalog/index.js';
import { ProvidersModule } from '../providers/index.js';
import { WholesaleController } from './admin/wholesale.controller.js';
import { CatalogSyncsRepository } from './catalog-syncs.repository.js';
import { LiveCatalogRepository } from './live-catalog.repository.js';
import { RefreshCatalog } from './refresh-catalog.js';
import { ReportDearSale } from './report-dear-sale.js';
import { TopupFitsRepository } from './topup-fits.repository.js';
import { AskTopups } from './worker/ask-topups.js';
import { StoreList } from './worker/store-list.js';
import { SyncCatalog } from './worker/sync-catalog.js';
import { WholesaleJobs } from './worker/wholesale-jobs.js';

/** For who notices that the live catalogue is out of date. */
@Module({
  imports: [AlertsModule],
  providers: [CatalogSyncsRepository, TopupFitsRepository, RefreshCatalog, ReportDearSale],
  exports: [RefreshCatalog, ReportDearSale],
})
export class WholesaleModule {}

/** Asking for a synchronisation and looking at the wholesalers, on the admin port. */
@Module({
  imports: [ProvidersModule, AuditModule],
  providers: [CatalogSyncsRepository],
  controllers: [WholesaleController],
})
export class WholesaleAdminModule {}

/** The jobs; only the worker role imports it. */
@Module({
  imports: [CatalogModule, ProvidersModule],
  providers: [
    CatalogSyncsRepository,
    LiveCatalogRepository,
    TopupFitsRepository,
    StoreList,
    SyncCatalog,
    AskTopups,
    WholesaleJobs,
  ],
})
export class WholesaleWorkerModule {}
