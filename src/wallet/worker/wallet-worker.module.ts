import { Module } from '@nestjs/common';
import { AlertsModule } from '../../alerts/index.js';
import { WalletModule } from '../wallet.module.js';
import { LowBalanceAlerts } from './low-balance-alerts.js';

@Module({ imports: [WalletModule, AlertsModule], providers: [LowBalanceAlerts] })
export class WalletWorkerModule {}
