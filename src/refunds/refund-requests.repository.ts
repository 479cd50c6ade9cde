import { Injectable } from '@nestjs/common';
import { InjectEntityManager } from '@nestjs/typeorm';
import { type EntityManager, type FindOptionsWhere, In, type SelectQueryBuilder } from 'typeorm';
import { AppError, NotFound } from '../common/errors/index.js';
import type { Page } from '../common/page.js';
import type { ReadScope, TenantScope } from '../common/tenant-scope.js';
import {
  KeysetPages,
  type ListOptions,
  modeIn,
  type Tx,
  violatedUniqueConstraint,
} from '../infra/database/index.js';
import { RefundRequestEntity, type RefundStatus } from './refund-request.entity.js';

export interface RefundFilters {
  readonly status?: RefundStatus | undefined;
  readonly esimId?: string | undefined;
}

/** The values of a new request; the others have defaults. */
export type NewRefundRequest = Pick<
  RefundRequestEntity,
  'id' | 'partnerId' | 'mode' | 'esimId' | 'orderId' | 'reason' | 'details' | 'currency'
>;

/** SQL of `refund_requests`. */
@Injectable()
export class RefundRequestsRepository {
  constructor(
    @InjectEntityManager() private readonly manager: EntityManager,
    private readonly pages: KeysetPages,
  ) {}

  /** @throws AppError `conflict` while another request for the eSIM is pending */
  async insert(tx: Tx, request: NewRefundRequest): Promise<RefundRequestEntity> {
    try {
      await tx.manager.insert(RefundRequestEntity, request);
    } catch (error) {
      if (violatedUniqueConstraint(error) !== 'refund_requests_open') throw error;
      throw new AppError('conflict', {
        detail: `A refund request for this eSIM is pending. GET /v1/refund-requests?esim_id=${request.esimId} shows it. Wait for the decision, or cancel it first.`,
      });
    }
    return tx.manager.findOneByOrFail(RefundRequestEntity, { id: request.id });
  }

  /** A request of one partner and mode; anything else is the same 404 (D14). @throws NotFound */
  async getById({ partnerId, mode }: ReadScope, id: string): Promise<RefundRequestEntity> {
    const found = await this.manager.findOneBy(RefundRequestEntity, { partnerId, mode: modeIn(mode), id });
    if (!found) throw new NotFound();
    return found;
  }

  /** Any partner's request in any mode. */
  async findById(id: string, manager: EntityManager = this.manager): Promise<RefundRequestEntity | null> {
    return manager.findOneBy(RefundRequestEntity, { id });
  }

  /** Any partner's request, for the portal team. @throws NotFound */
  async getOfAny(manager: EntityManager, id: string): Promise<RefundRequestEntity> {
    const found = await this.findById(id, manager);
    if (!found) throw new NotFound();
    return found;
  }

  /**
   * The request with its row locked until the transaction ends. @throws NotFound, AppError `conflict` unless it is
   * pending
   */
  async lockPending(tx: Tx, where: FindOptionsWhere<RefundRequestEntity>): Promise<RefundRequestEntity> {
    const found = await tx.manager.findOne(RefundRequestEntity, {
      where,
      lock: { mode: 'pessimistic_write' },
    });
    if (!found) throw new NotFound();
    if (found.status !== 'pending')
      throw new AppError('conflict', {
        detail: `The refund request is already ${found.status}. Fetch it for its details.`,
      });
    return found;
  }

  /** Ends a request whose row `tx` has locked. */
  async end(
    tx: Tx,
    request: RefundRequestEntity,
    changes: Partial<RefundRequestEntity>,
  ): Promise<RefundRequestEntity> {
    await tx.manager.update(RefundRequestEntity, { id: request.id }, changes);
    return Object.assign(request, changes);
  }

  async countOfEsim(tx: Tx, esimId: string): Promise<number> {
    return tx.manager.countBy(RefundRequestEntity, { esimId });
  }

  /** The latest requests for these eSIMs, newest first. */
  async listOfEsims(esimIds: readonly string[], limit: number): Promise<readonly RefundRequestEntity[]> {
    return this.manager.find(RefundRequestEntity, {
      where: { esimId: In([...esimIds]) },
      order: { createdAt: 'DESC', id: 'DESC' },
      take: limit,
    });
  }

  async list(
    { partnerId, mode }: TenantScope,
    filters: RefundFilters,
    options: ListOptions,
  ): Promise<Page<RefundRequestEntity>> {
    const query = this.matching(filters).andWhere('t.partner_id = :partnerId AND t.mode = :mode', {
      partnerId,
      mode,
    });
    return this.pages.list(query, options);
  }

  /** The requests of all partners in both modes. */
  async listOfAll(filters: RefundFilters, options: ListOptions): Promise<Page<RefundRequestEntity>> {
    return this.pages.list(this.matching(filters), options);
  }

  private matching({ status, esimId }: RefundFilters): SelectQueryBuilder<RefundRequestEntity> {
    const query = this.manager.createQueryBuilder(RefundRequestEntity, 't');
    if (status !== undefined) query.andWhere('t.status = :status', { status });
    if (esimId !== undefined) query.andWhere('t.esim_id = :esimId', { esimId });
    return query;
  }
}
