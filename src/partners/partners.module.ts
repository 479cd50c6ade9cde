import { Module } from '@nestjs/common';
import { AuditModule } from '../audit/index.js';
import { PartnersController } from './admin/partners.controller.js';
import { ChangePartnerStatus } from './change-partner-status.js';
import { CreatePartner } from './create-partner.js';
import { PartnersService } from './find-partner.js';
import { PartnersRepository } from './partners.repository.js';
import { UpdatePartner } from './update-partner.js';

@Module({
  imports: [AuditModule],
  providers: [PartnersRepository, PartnersService, CreatePartner],
  exports: [PartnersRepository, PartnersService, CreatePartner],
})
export class PartnersModule {}

/** Administration of partners, on the admin port. */
@Module({
  imports: [PartnersModule, AuditModule],
  providers: [UpdatePartner, ChangePartnerStatus],
  controllers: [PartnersController],
})
export class PartnersAdminModule {}
