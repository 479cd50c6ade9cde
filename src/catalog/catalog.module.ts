import { Module } from '@nestjs/common';
import { AuditModule } from '../audit/index.js';
import { PartnersModule } from '../partners/index.js';
import { CatalogList } from './catalog-list.js';
import { CatalogRepository } from './catalog.repository.js';
import { CatalogService } from './catalog.service.js';
import { PackageSources, SellablePackages } from './sellable-packages.js';
import { CatalogSnapshots, PartnerCatalogs } from './partner-catalogs.js';
import { PriceListsRepository } from './price-lists.repository.js';
import { TopupFits } from './topup-fits.js';
import { SetPriceList } from './set-price-list.js';
import { CatalogController } from './api/catalog.controller.js';
import { PriceListController } from './admin/price-list.controller.js';

@Module({
  providers: [
    CatalogRepository,
    CatalogSnapshots,
    PriceListsRepository,
    PartnerCatalogs,
    CatalogList,
    SellablePackages,
    CatalogService,
    PackageSources,
    TopupFits,
  ],
  exports: [CatalogRepository, PriceListsRepository, CatalogList, CatalogService, PackageSources],
})
export class CatalogModule {}

/** The catalog for partners. */
@Module({ imports: [CatalogModule], controllers: [CatalogController] })
export class CatalogApiModule {}

/** Price lists, for the portal team. */
@Module({
  imports: [CatalogModule, PartnersModule, AuditModule],
  providers: [SetPriceList],
  controllers: [PriceListController],
})
export class CatalogAdminModule {}
