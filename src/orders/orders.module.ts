import { Module } from '@nestjs/common';
import { CatalogModule } from '../catalog/index.js';
import { EsimsModule } from '../esims/index.js';
import { ProvidersModule } from '../providers/index.js';
import { CancelOrder } from './cancel-order.js';
import { OrderQueueRepository } from './order-queue.repository.js';
import { OrderWakeUpsModule } from './order-queue.js';
import { OrdersRepository } from './orders.repository.js';
import { PlaceOrder } from './place-order.js';
import { ReadOrders } from './read-orders.js';

@Module({
  imports: [CatalogModule, EsimsModule, ProvidersModule, OrderWakeUpsModule],
  providers: [OrdersRepository, OrderQueueRepository, PlaceOrder, CancelOrder, ReadOrders],
  exports: [OrdersRepository, OrderQueueRepository, PlaceOrder, CancelOrder, ReadOrders, OrderWakeUpsModule],
})
export class OrdersModule {}
