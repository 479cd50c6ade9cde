import { Module } from '@nestjs/common';
import { WalletController } from './api/wallet.controller.js';

@Module({ controllers: [WalletController] })
export class WalletApiModule {}
