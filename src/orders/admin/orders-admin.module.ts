import { Module } from '@nestjs/common';
import { PartnersModule } from '../../partners/index.js';
import { OrdersModule } from '../orders.module.js';
import { PartnerOrdersController } from './partner-orders.controller.js';

@Module({ imports: [PartnersModule, OrdersModule], controllers: [PartnerOrdersController] })
export class OrdersAdminModule {}
