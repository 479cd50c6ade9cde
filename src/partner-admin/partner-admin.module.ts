import { Module } from '@nestjs/common';
import { AuditModule } from '../audit/index.js';
import { PartnersModule } from '../partners/index.js';
import { WalletModule } from '../wallet/index.js';
import { PartnersController } from './admin/partners.controller.js';

/** Administration of partners, on the admin port. */
@Module({ imports: [PartnersModule, WalletModule, AuditModule], controllers: [PartnersController] })
export class PartnerAdminModule {}
