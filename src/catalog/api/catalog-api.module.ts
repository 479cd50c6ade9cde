import { Module } from '@nestjs/common';
import { CatalogModule } from '../catalog.module.js';
import { CatalogController } from './catalog.controller.js';

@Module({ imports: [CatalogModule], controllers: [CatalogController] })
export class CatalogApiModule {}
