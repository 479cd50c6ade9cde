import { Module } from '@nestjs/common';
import { CatalogModule } from '../catalog/index.js';
import { EsimsModule } from '../esims/index.js';
import { EventsModule } from '../events/index.js';
import { ProvidersModule } from '../providers/index.js';
import { WalletModule } from '../wallet/index.js';
import { WholesaleModule } from '../wholesale/index.js';
import { EndTopup } from './end-topup.js';
import { HurryTopups } from './hurry-topups.js';
import { PlaceTopup } from './place-topup.js';
import { ReadTopups } from './read-topups.js';
import { TopupEndingsRepository } from './topup-endings.repository.js';
import { TopupQueueRepository } from './topup-queue.repository.js';
import { TopupWakeUpsModule } from './topup-queue.js';
import { TopupsRepository } from './topups.repository.js';

const PROVIDERS = [
  TopupsRepository,
  TopupQueueRepository,
  TopupEndingsRepository,
  PlaceTopup,
  EndTopup,
  HurryTopups,
  ReadTopups,
];

@Module({
  imports: [
    CatalogModule,
    EsimsModule,
    EventsModule,
    ProvidersModule,
    WalletModule,
    WholesaleModule,
    TopupWakeUpsModule,
  ],
  providers: PROVIDERS,
  exports: [...PROVIDERS, TopupWakeUpsModule],
})
export class TopupsModule {}
