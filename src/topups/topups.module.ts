import { Module } from '@nestjs/common';
import { CatalogModule } from '../catalog/index.js';
import { EsimsModule } from '../esims/index.js';
import { EventsModule } from '../events/index.js';
import { ProvidersModule } from '../providers/index.js';
import { WalletModule } from '../wallet/index.js';
import { CatalogSyncModule } from '../catalog-sync/index.js';
import { EndTopup } from './end-topup.js';
import { PlaceTopup } from './place-topup.js';
import { ReadTopups } from './read-topups.js';
import { TopupEndingsRepository } from './topup-endings.repository.js';
import { TopupJobsRepository } from './topup-jobs.repository.js';
import { TopupNotifierModule } from './topup-jobs.js';
import { TopupsRepository } from './topups.repository.js';

const PROVIDERS = [
  TopupsRepository,
  TopupJobsRepository,
  TopupEndingsRepository,
  PlaceTopup,
  EndTopup,
  ReadTopups,
];

@Module({
  imports: [
    CatalogModule,
    EsimsModule,
    EventsModule,
    ProvidersModule,
    WalletModule,
    CatalogSyncModule,
    TopupNotifierModule,
  ],
  providers: PROVIDERS,
  exports: [...PROVIDERS, TopupNotifierModule],
})
export class TopupsModule {}
