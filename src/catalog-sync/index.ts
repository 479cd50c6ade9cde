/**
 * Copies the live providers' packages into the catalog: prices, withdrawals, and which top-ups fit which package.
 * Tables: catalog_syncs, topup_fits, package_sources, package_price_history; it writes catalog's packages through its
 * repository.
 * Callers: the worker's sweeps, support (`POST /internal/v1/catalog/sync`), and orders and top-ups that were refused
 * for their price (`RefreshCatalog`) or charged above the list (`ReportCostOverrun`).
 * Flow: CatalogSyncJobs, SyncCatalog (one run, under a lease), StoreList (page by page), StorePackages (without those
 * that PostgreSQL refuses), LiveCatalogRepository.
 */
import { CatalogSyncEntity } from './catalog-sync.entity.js';

export { CatalogHistoryRepository } from './catalog-history.repository.js';
export { RefreshCatalog, ReportCostOverrun } from './report-cost-overrun.js';
export { CatalogSyncAdminModule, CatalogSyncModule, CatalogSyncWorkerModule } from './catalog-sync.module.js';

export const CATALOG_SYNC_ENTITIES = [CatalogSyncEntity];
