import { Injectable } from '@nestjs/common';
import { InjectEntityManager } from '@nestjs/typeorm';
import type { EntityManager, SelectQueryBuilder } from 'typeorm';
import { AppError, NotFound } from '../common/errors/index.js';
import { MODES } from '../common/mode.js';
import { mapPage, type Page } from '../common/page.js';
import type { PartnerScope, ReadScope, TenantScope } from '../common/tenant-scope.js';
import { EsimsRepository } from '../esims/index.js';
import {
  KeysetPages,
  type ListOptions,
  modeIn,
  sql,
  type Tx,
  updateVersioned,
  violatedUniqueConstraint,
} from '../infra/database/index.js';
import { type AcceptedRow, insertionByMode, toAccepted } from '../providers/index.js';
import { OrderEntity, type OrderFilters, type OrderWithEsims } from './order.js';

/** What acceptance decides about an order. */
type NewOrder = Pick<
  OrderEntity,
  | 'id'
  | 'partnerId'
  | 'mode'
  | 'packageId'
  | 'quantity'
  | 'dataBytes'
  | 'validityDays'
  | 'activationPolicy'
  | 'unitPriceAmount'
  | 'currency'
  | 'reference'
  | 'metadata'
  | 'provider'
  | 'providerReference'
  | 'upstreamPackageId'
  | 'unitCostMicros'
  | 'unitCostCurrency'
  | 'acceptedRequestId'
  | 'traceparent'
> & {
  /** The provider reference where `providerReference` is that of an earlier order: its key is used again. */
  readonly otherReference: string;
};

const INSERT_ORDER = insertionByMode(
  'order',
  { provider: '$10', reference: '$11', otherReference: '$20' },
  ({ reference, placedSince }) => `
  INSERT INTO orders (id, partner_id, mode, status, package_id, quantity, unit_price_amount, currency, reference,
                      metadata, provider, provider_reference, accepted_request_id, upstream_package_id,
                      unit_cost_micros, unit_cost_currency, data_bytes, validity_days, activation_policy, traceparent,
                      next_attempt_at, upstream_placed_at)
  VALUES ($1, $2, $3, 'pending', $4, $5, $6, $7, $8, $9, $10,
          ${reference},
          $12, $13, $14, $15, $16, $17, $18, $19, now(),
          ${placedSince})
  RETURNING created_at, next_attempt_at, provider_reference, upstream_placed_at`,
);

/** The table's defaults: an order that nobody has worked on. */
const UNTOUCHED = {
  status: 'pending',
  version: 1,
  quantityIssued: 0,
  quantityFailed: 0,
  refundedAmount: 0,
  failureCode: null,
  failureReason: null,
  cancelFailureCode: null,
  cancelFailureReason: null,
  statusBeforeCancel: null,
  cancelRequestedAt: null,
  upstreamAttempts: 0,
  lastError: null,
  leaseUntil: null,
  fence: 0,
  issuedAt: null,
  failedAt: null,
} as const;

/** SQL of `orders` for the APIs; `OrderJobsRepository` has the worker's. */
@Injectable()
export class OrdersRepository {
  constructor(
    @InjectEntityManager() private readonly manager: EntityManager,
    private readonly pages: KeysetPages,
  ) {}

  /**
   * Keeps a new order, due at once; what it does not name has the table's defaults. By hand: TypeORM's insert builder
   * costs more than the statement.
   * @throws AppError `reference_taken`
   */
  async insert(tx: Tx, { otherReference, ...order }: NewOrder): Promise<OrderEntity> {
    try {
      const { rows } = await sql<AcceptedRow>(tx.manager, INSERT_ORDER[order.mode], [
        order.id,
        order.partnerId,
        order.mode,
        order.packageId,
        order.quantity,
        order.unitPriceAmount,
        order.currency,
        order.reference,
        JSON.stringify(order.metadata),
        order.provider,
        order.providerReference,
        order.acceptedRequestId,
        order.upstreamPackageId,
        order.unitCostMicros,
        order.unitCostCurrency,
        order.dataBytes,
        order.validityDays,
        order.activationPolicy,
        order.traceparent,
        ...(order.mode === 'live' ? [otherReference] : []),
      ]);
      return { ...UNTOUCHED, ...order, ...toAccepted(rows[0]!) };
    } catch (error) {
      if (violatedUniqueConstraint(error) === 'orders_reference')
        throw new AppError('reference_taken', {
          detail: 'Another order has this reference. GET /v1/orders?reference= shows it.',
        });
      throw error;
    }
  }

  async find(
    { partnerId, mode }: ReadScope,
    id: string,
    manager: EntityManager = this.manager,
  ): Promise<OrderEntity | null> {
    return manager.findOneBy(OrderEntity, { partnerId, mode: modeIn(mode), id });
  }

  async findForUpdate(tx: Tx, scope: TenantScope, id: string): Promise<OrderEntity | null> {
    return tx.manager.findOne(OrderEntity, {
      where: { partnerId: scope.partnerId, mode: scope.mode, id },
      lock: { mode: 'pessimistic_write' },
    });
  }

  /** Any partner's order in any mode, for support. */
  async findById(id: string): Promise<OrderEntity | null> {
    return this.manager.findOneBy(OrderEntity, { id });
  }

  /** The order of a provider reference, whoever it belongs to. @throws Error when there is none */
  async getByProviderReference(tx: Tx, providerReference: string): Promise<OrderEntity> {
    return tx.manager.findOneByOrFail(OrderEntity, { providerReference });
  }

  /** As `findById`, with the row locked for `tx`. */
  async findByIdForUpdate(tx: Tx, id: string): Promise<OrderEntity | null> {
    return tx.manager.findOne(OrderEntity, { where: { id }, lock: { mode: 'pessimistic_write' } });
  }

  /** Whether an eSIM of the order was topped up, or is about to be: its data could not be taken back. */
  async hasTopups(tx: Tx, orderId: string): Promise<boolean> {
    const { rows } = await sql(
      tx.manager,
      `SELECT 1 FROM topups t JOIN esims e ON e.id = t.esim_id
       WHERE e.order_id = $1 AND t.status <> 'failed' LIMIT 1`,
      [orderId],
    );
    return rows.length > 0;
  }

  /** Changes an order whose row `tx` has locked; answers its version then (D48). */
  async update(tx: Tx, id: string, changes: Partial<OrderEntity>): Promise<number> {
    return updateVersioned(tx.manager, OrderEntity, id, changes);
  }

  async list(
    { partnerId, mode }: PartnerScope,
    filters: OrderFilters,
    options: ListOptions,
    manager: EntityManager = this.manager,
  ): Promise<Page<OrderEntity>> {
    const modes = mode === undefined ? MODES : [mode];
    const queries = modes.map((each) => this.matching({ partnerId, mode: each }, filters, manager));
    return this.pages.listMerged(queries, options);
  }

  private matching(
    { partnerId, mode }: TenantScope,
    filters: OrderFilters,
    manager: EntityManager,
  ): SelectQueryBuilder<OrderEntity> {
    const query = manager
      .createQueryBuilder(OrderEntity, 't')
      .where('t.partner_id = :partnerId AND t.mode = :mode', { partnerId, mode });
    if (filters.status !== undefined) query.andWhere('t.status = :status', { status: filters.status });
    if (filters.reference !== undefined) query.andWhere('t.reference = :ref', { ref: filters.reference });
    if (filters.createdAfter) query.andWhere('t.created_at >= :after', { after: filters.createdAfter });
    if (filters.createdBefore) query.andWhere('t.created_at < :before', { before: filters.createdBefore });
    return query;
  }
}

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
  async getById(scope: ReadScope, id: string): Promise<OrderWithEsims> {
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
