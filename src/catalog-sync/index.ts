import { CatalogSyncEntity } from './catalog-sync.entity.js';

export { RefreshCatalog, ReportCostOverrun } from './report-cost-overrun.js';
export { CatalogSyncAdminModule, CatalogSyncModule, CatalogSyncWorkerModule } from './catalog-sync.module.js';

export const CATALOG_SYNC_ENTITIES = [CatalogSyncEntity];
