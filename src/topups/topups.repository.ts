import { Injectable } from '@nestjs/common';
import { InjectEntityManager } from '@nestjs/typeorm';
import type { EntityManager, SelectQueryBuilder } from 'typeorm';
import { AppError, NotFound } from '../common/errors/index.js';
import { MODES } from '../common/mode.js';
import type { Page } from '../common/page.js';
import type { PartnerScope, ReadScope, TenantScope } from '../common/tenant-scope.js';
import {
  KeysetPages,
  type ListOptions,
  modeIn,
  sql,
  type Tx,
  violatedUniqueConstraint,
} from '../infra/database/index.js';
import { type AcceptedRow, insertionByMode, toAccepted } from '../providers/index.js';
import { TopupEntity, type TopupFilters } from './topup.js';

/** What acceptance decides about a top-up. */
type NewTopup = Pick<
  TopupEntity,
  | 'id'
  | 'partnerId'
  | 'mode'
  | 'esimId'
  | 'iccid'
  | 'packageId'
  | 'priceAmount'
  | 'currency'
  | 'dataAddedBytes'
  | 'validityAddedDays'
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
  /** The provider reference where `providerReference` is that of an earlier top-up: its key is used again. */
  readonly otherReference: string;
};

const INSERT_TOPUP = insertionByMode(
  'topup',
  { esimId: '$4', provider: '$13', reference: '$14', otherReference: '$20' },
  ({ reference, placedSince }) => `
  INSERT INTO topups (id, partner_id, mode, status, esim_id, iccid, package_id, price_amount, currency,
                      data_added_bytes, validity_added_days, reference, metadata, provider, provider_reference,
                      upstream_package_id, unit_cost_micros, unit_cost_currency, accepted_request_id, traceparent,
                      next_attempt_at, upstream_placed_at)
  VALUES ($1, $2, $3, 'pending', $4, $5, $6, $7, $8, $9, $10, $11, $12, $13,
          ${reference},
          $15, $16, $17, $18, $19, now(),
          ${placedSince})
  RETURNING created_at, next_attempt_at, provider_reference, upstream_placed_at`,
);

/** The table's defaults: a top-up that nobody has worked on. */
const UNTOUCHED = {
  status: 'pending',
  version: 1,
  failureCode: null,
  failureReason: null,
  attempts: 0,
  lastError: null,
  leaseUntil: null,
  fence: 0,
  completedAt: null,
  failedAt: null,
} as const;

/** SQL of `topups` for the APIs; `TopupJobsRepository` has the worker's. */
@Injectable()
export class TopupsRepository {
  constructor(
    @InjectEntityManager() private readonly manager: EntityManager,
    private readonly pages: KeysetPages,
  ) {}

  /** Deletes up to `limit` of eSIMs that go past their retention (D44); answers the provider references. */
  async deleteOfEsims(tx: Tx, esimIds: readonly string[], limit: number): Promise<readonly string[]> {
    const { rows } = await sql<{ reference: string }>(
      tx.manager,
      `DELETE FROM topups WHERE id = ANY (ARRAY(SELECT id FROM topups WHERE esim_id = ANY ($1) LIMIT $2))
       RETURNING provider_reference AS reference`,
      [esimIds, limit],
    );
    return rows.map(({ reference }) => reference);
  }

  /**
   * Keeps the order of an eSIM from being canceled or purged until the end of `tx`; true when it is canceled, or is about
   * to be. @throws NotFound when it was purged, its eSIMs with it, while this waited for its row (D44)
   */
  async lockCancellation(tx: Tx, orderId: string): Promise<boolean> {
    const { rows } = await sql<{ ends: boolean }>(
      tx.manager,
      `SELECT status IN ('canceling', 'canceled') AS ends FROM orders WHERE id = $1 FOR SHARE`,
      [orderId],
    );
    if (!rows[0]) throw new NotFound();
    return rows[0].ends;
  }

  /** Keeps a new top-up, due at once. @throws AppError `reference_taken` */
  async insert(tx: Tx, { otherReference, ...topup }: NewTopup): Promise<TopupEntity> {
    try {
      const { rows } = await sql<AcceptedRow>(tx.manager, INSERT_TOPUP[topup.mode], [
        topup.id,
        topup.partnerId,
        topup.mode,
        topup.esimId,
        topup.iccid,
        topup.packageId,
        topup.priceAmount,
        topup.currency,
        topup.dataAddedBytes,
        topup.validityAddedDays,
        topup.reference,
        JSON.stringify(topup.metadata),
        topup.provider,
        topup.providerReference,
        topup.upstreamPackageId,
        topup.unitCostMicros,
        topup.unitCostCurrency,
        topup.acceptedRequestId,
        topup.traceparent,
        ...(topup.mode === 'live' ? [otherReference] : []),
      ]);
      return { ...UNTOUCHED, ...topup, ...toAccepted(rows[0]!) };
    } catch (error) {
      if (violatedUniqueConstraint(error) === 'topups_reference')
        throw new AppError('reference_taken', {
          detail: 'Another top-up has this reference. GET /v1/topups?reference= shows it.',
        });
      throw error;
    }
  }

  async find({ partnerId, mode }: ReadScope, id: string): Promise<TopupEntity | null> {
    return this.manager.findOneBy(TopupEntity, { partnerId, mode: modeIn(mode), id });
  }

  /** Any partner's top-up in any mode, for support. */
  async findById(id: string): Promise<TopupEntity | null> {
    return this.manager.findOneBy(TopupEntity, { id });
  }

  /** The top-up of a provider reference, whoever it belongs to. @throws Error when there is none */
  async getByProviderReference(tx: Tx, providerReference: string): Promise<TopupEntity> {
    return tx.manager.findOneByOrFail(TopupEntity, { providerReference });
  }

  /** As `findById`, with the row locked for `tx`. */
  async findByIdForUpdate(tx: Tx, id: string): Promise<TopupEntity | null> {
    return tx.manager.findOne(TopupEntity, { where: { id }, lock: { mode: 'pessimistic_write' } });
  }

  async list(
    { partnerId, mode }: PartnerScope,
    filters: TopupFilters,
    options: ListOptions,
  ): Promise<Page<TopupEntity>> {
    const modes = mode === undefined ? MODES : [mode];
    const queries = modes.map((each) => this.matching({ partnerId, mode: each }, filters));
    return this.pages.listMerged(queries, options);
  }

  private matching({ partnerId, mode }: TenantScope, filters: TopupFilters): SelectQueryBuilder<TopupEntity> {
    const query = this.manager
      .createQueryBuilder(TopupEntity, 't')
      .where('t.partner_id = :partnerId AND t.mode = :mode', { partnerId, mode });
    if (filters.esimId !== undefined) query.andWhere('t.esim_id = :esimId', { esimId: filters.esimId });
    if (filters.status !== undefined) query.andWhere('t.status = :status', { status: filters.status });
    if (filters.reference !== undefined) query.andWhere('t.reference = :ref', { ref: filters.reference });
    return query;
  }
}

/** Reads top-ups of one partner and mode; anything else is the same 404 (D14). */
@Injectable()
export class ReadTopups {
  constructor(private readonly topups: TopupsRepository) {}

  /** @throws NotFound */
  async getById(scope: ReadScope, id: string): Promise<TopupEntity> {
    const topup = await this.topups.find(scope, id);
    if (!topup) throw new NotFound();
    return topup;
  }

  /** @throws AppError `invalid_cursor` */
  async list(scope: PartnerScope, filters: TopupFilters, options: ListOptions): Promise<Page<TopupEntity>> {
    return this.topups.list(scope, filters, options);
  }
}
