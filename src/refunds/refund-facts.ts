import { Injectable } from '@nestjs/common';
import { InjectEntityManager } from '@nestjs/typeorm';
import { type EntityManager, In } from 'typeorm';
import { type EsimEntity, EsimsRepository } from '../esims/index.js';
import { OrderEntity, OrdersRepository, refundableOf } from '../orders/index.js';
import type { RefundRequestEntity } from './refund-request.entity.js';

/** Facts beside a request, for the person who decides it. */
export interface RequestWithFacts {
  readonly request: RefundRequestEntity;
  readonly order: OrderEntity;
  readonly esim: EsimEntity;
  /** The part of the eSIM's price that is not refunded yet. */
  readonly refundable: number;
}

/** Reads orders and eSIMs beside refund requests. */
@Injectable()
export class RefundFacts {
  constructor(
    @InjectEntityManager() private readonly manager: EntityManager,
    private readonly orders: OrdersRepository,
    private readonly esims: EsimsRepository,
  ) {}

  /** Skips requests whose order was purged in the meantime. */
  async addTo(
    requests: readonly RefundRequestEntity[],
    manager: EntityManager = this.manager,
  ): Promise<readonly RequestWithFacts[]> {
    const orderIds = [...new Set(requests.map(({ orderId }) => orderId))];
    const orders = await manager.findBy(OrderEntity, { id: In(orderIds) });
    const esims = await this.esims.listByOrders(manager, orderIds);
    const refunds = await this.orders.listRefunds(manager, orderIds);
    return requests.flatMap((request) => {
      const order = orders.find(({ id }) => id === request.orderId);
      const esim = esims.find(({ id }) => id === request.esimId);
      return order && esim ? [{ request, order, esim, refundable: refundableOf(order, esim, refunds) }] : [];
    });
  }
}
