import { Module } from '@nestjs/common';
import { AuditModule } from '../audit/index.js';
import { ManageWallet } from './manage-wallet.js';
import { Wallet } from './wallet.js';
import { WalletHoldsRepository } from './wallet-holds.repository.js';
import { WalletsRepository } from './wallets.repository.js';

@Module({
  imports: [AuditModule],
  providers: [WalletsRepository, WalletHoldsRepository, Wallet, ManageWallet],
  exports: [WalletsRepository, Wallet, ManageWallet],
})
export class WalletModule {}
