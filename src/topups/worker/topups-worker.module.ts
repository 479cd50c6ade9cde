import { Module } from '@nestjs/common';
import { EsimsModule } from '../../esims/index.js';
import { EventsModule } from '../../events/index.js';
import { ProvidersModule } from '../../providers/index.js';
import { WalletModule } from '../../wallet/index.js';
import { WholesaleModule } from '../../wholesale/index.js';
import { TopupsModule } from '../topups.module.js';
import { AskUpstream } from './ask-upstream.js';
import { FulfilTopup } from './fulfil-topup.js';
import { TopupLanes } from './topup-lanes.js';
import { TopupWakeUpsProcessor } from './topup-wake-ups.processor.js';

@Module({
  imports: [TopupsModule, EsimsModule, EventsModule, ProvidersModule, WalletModule, WholesaleModule],
  providers: [AskUpstream, FulfilTopup, TopupLanes, TopupWakeUpsProcessor],
})
export class TopupsWorkerModule {}
