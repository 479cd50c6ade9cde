import { CatalogSyncEntity } from './catalog-sync.entity.js';

export { RefreshCatalog } from './refresh-catalog.js';
export { ReportDearSale } from './report-dear-sale.js';
export { WholesaleAdminModule, WholesaleModule, WholesaleWorkerModule } from './wholesale.module.js';

export const WHOLESALE_ENTITIES = [CatalogSyncEntity];
