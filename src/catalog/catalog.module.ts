import { Module } from '@nestjs/common';
import { CatalogList } from './catalog-list.js';
import { CatalogRepository } from './catalog.repository.js';
import { CatalogService } from './catalog.service.js';
import { PackageSources } from './package-sources.js';
import { PartnerCatalogs } from './partner-catalogs.js';
import { PriceListsRepository } from './price-lists.repository.js';
import { CatalogSnapshots } from './catalog-snapshots.js';
import { SellablePackages } from './sellable-packages.js';
import { TopupFits } from './topup-fits.js';

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
