import { Module } from '@nestjs/common';
import { PartnersModule } from '../../partners/index.js';
import { WalletModule } from '../wallet.module.js';
import { PartnerWalletController } from './partner-wallet.controller.js';

@Module({ imports: [PartnersModule, WalletModule], controllers: [PartnerWalletController] })
export class WalletAdminModule {}
