import { Module } from '@nestjs/common';
import { AlertsModule } from '../alerts/index.js';
import { KeySpendingModule, RateBucketPurgeModule } from '../auth/index.js';
import { CatalogModule } from '../catalog/index.js';
import { CatalogSyncModule } from '../catalog-sync/index.js';
import { EsimsModule } from '../esims/index.js';
import { InstallLinksModule } from '../install-links/index.js';
import { OrdersModule } from '../orders/index.js';
import { PortalSessionsModule } from '../portal-sessions/index.js';
import { ProvidersModule } from '../providers/index.js';
import { TopupsModule } from '../topups/index.js';
import { PurgeJobs } from './worker/purge-jobs.js';
import { PurgeSandboxOrders } from './worker/purge-sandbox-orders.js';

/** Only the worker role imports it. */
@Module({
  imports: [
    AlertsModule,
    CatalogModule,
    CatalogSyncModule,
    EsimsModule,
    InstallLinksModule,
    KeySpendingModule,
    OrdersModule,
    PortalSessionsModule,
    ProvidersModule,
    RateBucketPurgeModule,
    TopupsModule,
  ],
  providers: [PurgeSandboxOrders, PurgeJobs],
})
export class RetentionWorkerModule {}
