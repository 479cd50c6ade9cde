import { Injectable } from '@nestjs/common';
import { InjectEntityManager } from '@nestjs/typeorm';
import { type EntityManager, In, Not, type SelectQueryBuilder } from 'typeorm';
import { NotFound } from '../common/errors/index.js';
import type { TenantScope } from '../common/tenant-scope.js';
import { KeysetPages, sql, type Tx } from '../infra/database/index.js';
import type { AutoTopupEntity } from '../esims/index.js';
import { PurchasesRepository } from '../purchases/index.js';
import { TopupEntity, type TopupFilters, TOPUPS } from './topup.js';

/** Properties set at acceptance, in addition to those of every purchase. */
const ACCEPTED = [
  'esimId',
  'iccid',
  'priceAmount',
  'days',
  'dataAddedBytes',
  'validityAddedDays',
  'autoTopupId',
] as const;

export interface AutomaticTopups {
  readonly placed: number;
  /** Those that have not failed: they count toward `max_times`. */
  readonly used: number;
  readonly lastId: string | null;
}

/** SQL of `topups` for the APIs; `TopupJobsRepository` has the worker's. */
@Injectable()
export class TopupsRepository extends PurchasesRepository<
  TopupEntity,
  (typeof ACCEPTED)[number],
  TopupFilters
> {
  constructor(@InjectEntityManager() manager: EntityManager, pages: KeysetPages) {
    super(manager, pages, TOPUPS, ACCEPTED);
  }

  /** Deletes up to `limit` top-ups of purged eSIMs (D44) and returns their provider references. */
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
   * Keeps an eSIM's order from being canceled or purged, and the eSIM from being revoked or replaced, until the end of
   * `tx`. Returns true when the order is canceled or canceling.
   * @throws NotFound
   */
  async lockCancellation(tx: Tx, { partnerId, mode }: TenantScope, esimId: string): Promise<boolean> {
    const { rows } = await sql<{ ends: boolean }>(
      tx.manager,
      `SELECT o.status IN ('canceling', 'canceled') AS ends FROM esims e JOIN orders o ON o.id = e.order_id
       WHERE e.id = $1 AND e.partner_id = $2 AND e.mode = $3 FOR SHARE OF o`,
      [esimId, partnerId, mode],
    );
    if (!rows[0]) throw new NotFound('This key has no eSIM with this id. GET /v1/esims lists its eSIMs.');
    return rows[0].ends;
  }

  /** The latest top-ups of these eSIMs. */
  async listOfEsims(esimIds: readonly string[], limit: number): Promise<readonly TopupEntity[]> {
    return this.manager.find(TopupEntity, {
      where: { esimId: In([...esimIds]) },
      order: { createdAt: 'DESC', id: 'DESC' },
      take: limit,
    });
  }

  /** The number of an eSIM's top-ups that have not failed. */
  async countOfEsim(tx: Tx, esimId: string): Promise<number> {
    return tx.manager.countBy(TopupEntity, { esimId, status: Not('failed') });
  }

  /** The top-ups that a rule has placed for its eSIM. */
  async countAutomatic(
    { id, esimId }: Pick<AutoTopupEntity, 'id' | 'esimId'>,
    manager: EntityManager = this.manager,
  ): Promise<AutomaticTopups> {
    const { rows } = await sql<{ placed: number; used: number; last_id: string | null }>(
      manager,
      `SELECT count(*)::int AS placed, (count(*) FILTER (WHERE status <> 'failed'))::int AS used, max(id) AS last_id
       FROM topups WHERE esim_id = $1 AND auto_topup_id = $2`,
      [esimId, id],
    );
    const { placed, used, last_id: lastId } = rows[0]!;
    return { placed, used, lastId };
  }

  protected override narrow(query: SelectQueryBuilder<TopupEntity>, { esimId }: TopupFilters): void {
    if (esimId !== undefined) query.andWhere('t.esim_id = :esimId', { esimId });
  }
}
