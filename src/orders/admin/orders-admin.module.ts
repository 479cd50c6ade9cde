import { Module } from '@nestjs/common';
import { OrdersModule } from '../orders.module.js';
import { PartnerOrdersController } from './partner-orders.controller.js';

@Module({ imports: [OrdersModule], controllers: [PartnerOrdersController] })
export class OrdersAdminModule {}
