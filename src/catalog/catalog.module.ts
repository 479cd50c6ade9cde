import { Module } from '@nestjs/common';
import { CatalogList } from './catalog-list.js';
import { CatalogRepository } from './catalog.repository.js';
import { CatalogService } from './catalog.service.js';
import { PartnerCatalogs } from './partner-catalogs.js';
import { PriceListsRepository } from './price-lists.repository.js';
import { CatalogSnapshots } from './catalog-snapshots.js';

@Module({
  providers: [
    CatalogRepository,
    CatalogSnapshots,
    PriceListsRepository,
    PartnerCatalogs,
    CatalogList,
    CatalogService,
  ],
  exports: [CatalogRepository, PriceListsRepository, CatalogList, CatalogService],
})
export class CatalogModule {}
