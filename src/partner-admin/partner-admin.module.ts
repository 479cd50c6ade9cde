import { Module } from '@nestjs/common';
import { AuditModule } from '../audit/index.js';
import { PartnersModule } from '../partners/index.js';
import { WalletModule } from '../wallet/index.js';
import { PartnersController } from './admin/partners.controller.js';
import { PortalBrandController } from './portal/portal-brand.controller.js';

/** Administration of partners, on the admin port. */
@Module({ imports: [PartnersModule, WalletModule, AuditModule], controllers: [PartnersController] })
export class PartnerAdminModule {}

/** A partner's own settings, on the portal's port. */
@Module({ imports: [PartnersModule], controllers: [PortalBrandController] })
export class PartnerPortalModule {}
