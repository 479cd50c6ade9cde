import { Module } from '@nestjs/common';
import { CatalogModule } from '../catalog/index.js';
import { EsimsModule } from '../esims/index.js';
import { ProvidersModule } from '../providers/index.js';
import { WalletModule } from '../wallet/index.js';
import { HurryTopups } from './hurry-topups.js';
import { PlaceTopup } from './place-topup.js';
import { ReadTopups } from './read-topups.js';
import { TopupQueueRepository } from './topup-queue.repository.js';
import { TopupWakeUpsModule } from './topup-queue.js';
import { TopupsRepository } from './topups.repository.js';

@Module({
  imports: [CatalogModule, EsimsModule, ProvidersModule, WalletModule, TopupWakeUpsModule],
  providers: [TopupsRepository, TopupQueueRepository, PlaceTopup, HurryTopups, ReadTopups],
  exports: [TopupsRepository, TopupQueueRepository, PlaceTopup, HurryTopups, ReadTopups, TopupWakeUpsModule],
})
export class TopupsModule {}
