import { CatalogSyncEntity } from './catalog-sync.entity.js';

export { WholesaleAdminModule, WholesaleWorkerModule } from './wholesale.module.js';

export const WHOLESALE_ENTITIES = [CatalogSyncEntity];
