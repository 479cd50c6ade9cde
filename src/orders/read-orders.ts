import { Injectable } from '@nestjs/common';
import { InjectEntityManager } from '@nestjs/typeorm';
import type { EntityManager } from 'typeorm';
import { NotFound } from '../common/errors/index.js';
import { mapPage, type Page } from '../common/page.js';
import type { PartnerScope, TenantScope } from '../common/tenant-scope.js';
import { EsimsRepository } from '../esims/index.js';
import type { ListOptions, Tx } from '../infra/database/index.js';
import type { OrderEntity, OrderFilters, OrderWithEsims } from './order.js';
import { OrdersRepository } from './orders.repository.js';

/**
 * Reads orders of one partner and mode; anything else is the same 404 (D14). Order and eSIMs come from one snapshot:
 * an answer never shows the eSIMs of an order that is still processing.
 */
@Injectable()
export class ReadOrders {
  constructor(
    @InjectEntityManager() private readonly manager: EntityManager,
    private readonly orders: OrdersRepository,
    private readonly esims: EsimsRepository,
  ) {}

  /** @throws NotFound */
  async getById(scope: TenantScope, id: string): Promise<OrderWithEsims> {
    return this.manager.transaction('REPEATABLE READ', async (manager) => {
      const order = await this.orders.find(scope, id, manager);
      if (!order) throw new NotFound();
      return this.withEsims(order, manager);
    });
  }

  /** @throws AppError `invalid_cursor` */
  async list(
    scope: PartnerScope,
    filters: OrderFilters,
    options: ListOptions,
  ): Promise<Page<OrderWithEsims>> {
    return this.manager.transaction('REPEATABLE READ', async (manager) => {
      const page = await this.orders.list(scope, filters, options, manager);
      const ids = page.items.map((order) => order.id);
      const byOrder = Map.groupBy(await this.esims.listByOrders(manager, ids), (esim) => esim.orderId);
      return mapPage(page, (order) => ({ order, esims: byOrder.get(order.id) ?? [] }));
    });
  }

  /** The order as `tx` sees it, with its eSIMs. */
  async complete(tx: Tx, order: OrderEntity): Promise<OrderWithEsims> {
    return this.withEsims(order, tx.manager);
  }

  private async withEsims(order: OrderEntity, manager: EntityManager): Promise<OrderWithEsims> {
    return { order, esims: await this.esims.listByOrders(manager, [order.id]) };
  }
}
