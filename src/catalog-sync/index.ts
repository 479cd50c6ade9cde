/**
 * Brings the packages of the live providers into the catalogue: prices, withdrawals, which top-ups fit which package.
 * Tables: catalog_syncs, topup_fits, package_sources, package_price_history; it writes catalog's packages through its repository.
 * Called by the worker's sweeps, by support (`POST /internal/v1/catalog/sync`), and by orders and top-ups that were
 * refused for their price (`RefreshCatalog`) or charged above the list (`ReportCostOverrun`).
 * Flow: CatalogSyncJobs, SyncCatalog (one run, under a lease), StoreList (page by page), StorePackages (without those that
 * PostgreSQL refuses), LiveCatalogRepository.
 */
import { CatalogSyncEntity } from './catalog-sync.entity.js';

export { CatalogHistoryRepository } from './catalog-history.repository.js';
export { RefreshCatalog, ReportCostOverrun } from './report-cost-overrun.js';
export { CatalogSyncAdminModule, CatalogSyncModule, CatalogSyncWorkerModule } from './catalog-sync.module.js';

export const CATALOG_SYNC_ENTITIES = [CatalogSyncEntity];
