import { Injectable } from '@nestjs/common';
import { InjectEntityManager } from '@nestjs/typeorm';
import type { EntityManager } from 'typeorm';
import { AppError } from '../common/errors/index.js';
import type { Mode } from '../common/mode.js';
import type { Page } from '../common/page.js';
import { KeysetPages, type ListOptions, type Tx, violatedUniqueConstraint } from '../infra/database/index.js';
import { OrderEntity } from './order.entity.js';
import type { OrderStatus } from './order-state.js';

export interface OrderOwner {
  readonly partnerId: string;
  /** Absent for support, who sees both modes. */
  readonly mode?: Mode | undefined;
}

export interface OrderFilters {
  readonly status?: OrderStatus | undefined;
  readonly reference?: string | undefined;
  readonly createdAfter?: Date | undefined;
  readonly createdBefore?: Date | undefined;
}

/** What a new order does not choose. */
type Defaulted = 'createdAt' | 'updatedAt' | 'nextAttemptAt';

/** SQL of `orders` for the APIs; `OrderQueueRepository` has the worker's. */
@Injectable()
export class OrdersRepository {
  constructor(
    @InjectEntityManager() private readonly manager: EntityManager,
    private readonly pages: KeysetPages,
  ) {}

  /** Keeps a new order, due at once. @throws AppError `reference_taken` */
  async insert(tx: Tx, order: Omit<OrderEntity, Defaulted>): Promise<OrderEntity> {
    try {
      const { generatedMaps } = await tx.manager.insert(OrderEntity, {
        ...order,
        nextAttemptAt: () => 'now()',
      });
      return { ...order, ...(generatedMaps[0] as Pick<OrderEntity, Defaulted>) };
    } catch (error) {
      if (violatedUniqueConstraint(error) === 'orders_reference') throw new AppError('reference_taken');
      throw error;
    }
  }

  async find(owner: { partnerId: string; mode: Mode }, id: string): Promise<OrderEntity | null> {
    return this.manager.findOneBy(OrderEntity, { partnerId: owner.partnerId, mode: owner.mode, id });
  }

  async findForUpdate(
    tx: Tx,
    owner: { partnerId: string; mode: Mode },
    id: string,
  ): Promise<OrderEntity | null> {
    return tx.manager.findOne(OrderEntity, {
      where: { partnerId: owner.partnerId, mode: owner.mode, id },
      lock: { mode: 'pessimistic_write' },
    });
  }

  async list(owner: OrderOwner, filters: OrderFilters, options: ListOptions): Promise<Page<OrderEntity>> {
    const query = this.manager
      .createQueryBuilder(OrderEntity, 't')
      .where('t.partner_id = :partnerId', { partnerId: owner.partnerId });
    if (owner.mode !== undefined) query.andWhere('t.mode = :mode', { mode: owner.mode });
    if (filters.status !== undefined) query.andWhere('t.status = :status', { status: filters.status });
    if (filters.reference !== undefined) query.andWhere('t.reference = :ref', { ref: filters.reference });
    if (filters.createdAfter) query.andWhere('t.created_at >= :after', { after: filters.createdAfter });
    if (filters.createdBefore) query.andWhere('t.created_at < :before', { before: filters.createdBefore });
    return this.pages.list(query, options);
  }
}
