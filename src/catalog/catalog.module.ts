import { Module } from '@nestjs/common';
import { AuditModule } from '../audit/index.js';
import { PartnersModule } from '../partners/index.js';
import { CatalogChangesRepository } from './catalog-changes.repository.js';
import { CatalogChanges } from './catalog-changes.js';
import { CatalogList } from './catalog-list.js';
import { CatalogPages } from './catalog-pages.js';
import { CatalogRepository } from './catalog.repository.js';
import { CatalogService } from './catalog.service.js';
import { PackageSources, SellablePackages } from './sellable-packages.js';
import { CatalogSnapshots, PartnerCatalogs } from './partner-catalogs.js';
import { PriceListsRepository } from './price-lists.repository.js';
import { TopupFits } from './topup-fits.js';
import { SetPriceList } from './set-price-list.js';
import { CatalogController } from './api/catalog.controller.js';
import { DestinationsController } from './api/destinations.controller.js';
import { Destinations } from './destinations.js';
import { PackagesController } from './admin/packages.controller.js';
import { PortalCatalogController } from './portal/portal-catalog.controller.js';
import { PriceListController } from './admin/price-list.controller.js';

@Module({
  providers: [
    CatalogChangesRepository,
    CatalogRepository,
    CatalogSnapshots,
    PriceListsRepository,
    PartnerCatalogs,
    CatalogPages,
    CatalogList,
    CatalogChanges,
    Destinations,
    SellablePackages,
    CatalogService,
    PackageSources,
    TopupFits,
  ],
  exports: [
    CatalogChangesRepository,
    CatalogRepository,
    PriceListsRepository,
    CatalogChanges,
    CatalogList,
    CatalogService,
    Destinations,
    PackageSources,
  ],
})
export class CatalogModule {}

/** The catalog for partners. */
@Module({ imports: [CatalogModule], controllers: [CatalogController, DestinationsController] })
export class CatalogApiModule {}

/** A partner's catalog, on the portal's port. */
@Module({ imports: [CatalogModule], controllers: [PortalCatalogController] })
export class CatalogPortalModule {}

/** Live packages and price lists, for the portal team. */
@Module({
  imports: [CatalogModule, PartnersModule, AuditModule],
  providers: [SetPriceList],
  controllers: [PackagesController, PriceListController],
})
export class CatalogAdminModule {}
