import { Module } from '@nestjs/common';
import { CatalogList } from './catalog-list.js';
import { CatalogRepository } from './catalog.repository.js';
import { CatalogService } from './catalog.service.js';
import { CatalogSnapshots } from './catalog-snapshots.js';

@Module({
  providers: [CatalogRepository, CatalogSnapshots, CatalogList, CatalogService],
  exports: [CatalogRepository, CatalogList, CatalogService],
})
export class CatalogModule {}
