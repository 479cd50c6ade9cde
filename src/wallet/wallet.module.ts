import { Module } from '@nestjs/common';
import { AuditModule } from '../audit/index.js';
import { KeySpendingModule } from '../auth/index.js';
import { EventsModule } from '../events/index.js';
import { PartnersModule } from '../partners/index.js';
import { AlertsModule } from '../alerts/index.js';
import { ExportStatement } from './export-statement.js';
import { ManageWallet } from './manage-wallet.js';
import { Wallet } from './wallet.js';
import { WalletHoldsRepository } from './wallet-holds.repository.js';
import { WalletsRepository } from './wallets.repository.js';
import { WalletController } from './api/wallet.controller.js';
import { PartnerWalletController } from './admin/partner-wallet.controller.js';
import { PortalWalletController } from './portal/portal-wallet.controller.js';
import { LowBalanceAlerts } from './worker/low-balance-alerts.js';

@Module({
  imports: [AuditModule, KeySpendingModule],
  providers: [WalletsRepository, WalletHoldsRepository, Wallet, ManageWallet],
  exports: [WalletsRepository, Wallet, ManageWallet],
})
export class WalletModule {}

/** Balance and statement, for partners. */
@Module({ imports: [WalletModule], controllers: [WalletController] })
export class WalletApiModule {}

/** Deposits, adjustments and limits, for the portal team. */
@Module({ imports: [PartnersModule, WalletModule], controllers: [PartnerWalletController] })
export class WalletAdminModule {}

/** Balance and statement, on the portal's port. */
@Module({ imports: [WalletModule], providers: [ExportStatement], controllers: [PortalWalletController] })
export class WalletPortalModule {}

/** Alerts and events for low wallets in the worker. */
@Module({ imports: [WalletModule, AlertsModule, EventsModule], providers: [LowBalanceAlerts] })
export class WalletWorkerModule {}
