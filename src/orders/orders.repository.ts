import { Injectable } from '@nestjs/common';
import { InjectEntityManager } from '@nestjs/typeorm';
import type { EntityManager, SelectQueryBuilder } from 'typeorm';
import { mapPage, type Page } from '../common/page.js';
import type { PartnerScope, ReadScope, TenantScope } from '../common/tenant-scope.js';
import { EsimsRepository } from '../esims/index.js';
import {
  columnsOf,
  KeysetPages,
  type ListOptions,
  type PreparedStatement,
  sql,
  toSafeInteger,
  type Tx,
  updateVersioned,
} from '../infra/database/index.js';
import { type NewPurchase, type NewState, PurchasesRepository } from '../purchases/index.js';
import { type EsimRefund, OrderEntity, type OrderFilters, ORDERS, type OrderWithEsims } from './order.js';

/** Properties set at acceptance, in addition to those of every purchase. */
const ACCEPTED = [
  'quantity',
  'days',
  'dataBytes',
  'validityDays',
  'activationPolicy',
  'installWithinDays',
  'unitPriceAmount',
  'replaces',
] as const;

/** SQL of `orders` for the APIs; `OrderJobsRepository` has the worker's. */
@Injectable()
export class OrdersRepository extends PurchasesRepository<
  OrderEntity,
  (typeof ACCEPTED)[number],
  OrderFilters
> {
  private readonly claimedInsertion: PreparedStatement;

  constructor(@InjectEntityManager() manager: EntityManager, pages: KeysetPages) {
    super(manager, pages, ORDERS, ACCEPTED);
    this.claimedInsertion = this.insertionOf(this.claimedState()).sandbox;
  }

  /**
   * Inserts a new Sandbox order as already claimed by this process and about to be placed, for `leaseMs`.
   * @throws AppError `reference_taken`
   */
  async insertClaimed(
    tx: Tx,
    order: NewPurchase<OrderEntity, (typeof ACCEPTED)[number]>,
    leaseMs: number,
  ): Promise<OrderEntity> {
    return this.insertBy(tx, this.claimedInsertion, [...this.parametersOf(order), leaseMs]);
  }

  async findForUpdate(tx: Tx, { partnerId, mode }: TenantScope, id: string): Promise<OrderEntity | null> {
    return this.findOne(tx.manager, { partnerId, mode, id }, true);
  }

  /** The refunds of the orders' eSIMs by approved requests; cancellations refund the rest. */
  async listRefunds(manager: EntityManager, orderIds: readonly string[]): Promise<readonly EsimRefund[]> {
    const { rows } = await sql<{ order_id: string; esim_id: string; amount: string }>(
      manager,
      `SELECT order_id, esim_id, sum(amount)::bigint AS amount FROM refund_requests
       WHERE order_id = ANY ($1) AND status = 'approved' GROUP BY order_id, esim_id`,
      [orderIds],
    );
    return rows.map(({ order_id: orderId, esim_id: esimId, amount }) => ({
      orderId,
      esimId,
      amount: toSafeInteger(amount),
    }));
  }

  /** Changes an order whose row `tx` has locked, and returns its new version (D48). */
  async update(tx: Tx, id: string, changes: Partial<OrderEntity>): Promise<number> {
    return updateVersioned(tx.manager, OrderEntity, id, changes);
  }

  /** The state after a claim, which records the placement of an order (D61). Its parameter is the lease. */
  private claimedState(): NewState {
    const [attempts] = columnsOf(this.manager, OrderEntity, ['attempts']);
    const lease = `now() + $${this.accepted.length + 1}::int * interval '1 millisecond'`;
    return {
      columns: `status, next_attempt_at, upstream_placed_at, lease_until, fence, ${attempts!.name}, version`,
      values: () => `'processing', now(), now(), ${lease}, 1, 1, 2`,
    };
  }

  protected override narrow(query: SelectQueryBuilder<OrderEntity>, filters: OrderFilters): void {
    if (filters.createdAfter) query.andWhere('t.created_at >= :after', { after: filters.createdAfter });
    if (filters.createdBefore) query.andWhere('t.created_at < :before', { before: filters.createdBefore });
  }
}

/**
 * Reads orders of one partner and mode; anything else is the same 404 (D14). Order and eSIMs come from one snapshot, so
 * a response never shows eSIMs of an order that is still processing.
 */
@Injectable()
export class ReadOrders {
  constructor(
    @InjectEntityManager() private readonly manager: EntityManager,
    private readonly orders: OrdersRepository,
    private readonly esims: EsimsRepository,
  ) {}

  /** @throws NotFound */
  async getById(scope: ReadScope, id: string): Promise<OrderWithEsims> {
    return this.manager.transaction('REPEATABLE READ', async (manager) => {
      return this.withEsims(await this.orders.getById(scope, id, manager), manager);
    });
  }

  /** Any partner's order in any mode, for a caller that checks whether it may see the order. */
  async findById(id: string): Promise<OrderWithEsims | null> {
    return this.manager.transaction('REPEATABLE READ', async (manager) => {
      const order = await this.orders.findById(id, manager);
      return order && this.withEsims(order, manager);
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

  /** The order with its eSIMs as seen by `tx`. */
  async complete(tx: Tx, order: OrderEntity): Promise<OrderWithEsims> {
    return this.withEsims(order, tx.manager);
  }

  private async withEsims(order: OrderEntity, manager: EntityManager): Promise<OrderWithEsims> {
    return { order, esims: await this.esims.listByOrders(manager, [order.id]) };
  }
}
