import { Module } from '@nestjs/common';
import { AuditModule } from '../../audit/index.js';
import { PartnersModule } from '../../partners/index.js';
import { CatalogModule } from '../catalog.module.js';
import { SetPriceList } from '../set-price-list.js';
import { PriceListController } from './price-list.controller.js';

@Module({
  imports: [CatalogModule, PartnersModule, AuditModule],
  providers: [SetPriceList],
  controllers: [PriceListController],
})
export class CatalogAdminModule {}
