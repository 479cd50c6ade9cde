import { Module } from '@nestjs/common';
import { OrdersModule } from '../orders.module.js';
import { OrdersController } from './orders.controller.js';

@Module({ imports: [OrdersModule], controllers: [OrdersController] })
export class OrdersApiModule {}
