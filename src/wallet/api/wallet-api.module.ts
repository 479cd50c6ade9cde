import { Module } from '@nestjs/common';
import { WalletModule } from '../wallet.module.js';
import { WalletController } from './wallet.controller.js';

@Module({ imports: [WalletModule], controllers: [WalletController] })
export class WalletApiModule {}
