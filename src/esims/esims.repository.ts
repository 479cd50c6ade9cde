import { Injectable } from '@nestjs/common';
import { InjectEntityManager } from '@nestjs/typeorm';
import { type EntityManager, In, type SelectQueryBuilder } from 'typeorm';
import { type Mode, MODES } from '../common/mode.js';
import type { Page } from '../common/page.js';
import type { PartnerScope, ReadScope, TenantScope } from '../common/tenant-scope.js';
import {
  columnsOf,
  KeysetPages,
  type ListOptions,
  modeIn,
  prepared,
  type PreparedStatement,
  rowToEntity,
  selectList,
  send,
  sql,
  type SqlColumn,
  type Tx,
  updateVersioned,
} from '../infra/database/index.js';
import type { EsimStatus } from './esim.js';
import type { OrderSituation } from './esim-actions.js';
import { EsimEntity } from './esim.entity.js';
import type { PlanPurchase } from './esim-plans.js';

export interface EsimFilters {
  readonly status?: EsimStatus | undefined;
  readonly orderId?: string | undefined;
  readonly iccid?: string | undefined;
  readonly label?: string | undefined;
}

/** Columns set at issue; installation and use come later. */
const ISSUED = [
  'id',
  'partnerId',
  'mode',
  'orderId',
  'packageId',
  'iccid',
  'apn',
  'msisdn',
  'pooled',
  'installSecrets',
  'totalBytes',
  'usageAsOf',
  'usageSource',
  'days',
  'validityDays',
  'activationPolicy',
  'installBy',
  'expiresAt',
  'expiryWarningAt',
  'provider',
  'providerEsimId',
  'nextPollAt',
] as const satisfies readonly (keyof EsimEntity)[];
export type NewEsim = Pick<EsimEntity, (typeof ISSUED)[number]>;

function insertStatement(columns: readonly SqlColumn[]): PreparedStatement {
  const names = columns.map(({ name }) => name).join(', ');
  return prepared(`
  INSERT INTO esims (status, profile_status, unlimited, ${names})
  SELECT 'issued', 'released', total_bytes IS NULL, ${names}
  FROM unnest(${columns.map(({ type }, at) => `$${at + 1}::${type}[]`).join(', ')}) AS e (${names})`);
}

/** A null value leaves a column unchanged; no top-up removes anything. */
const UPDATE_TOPPED_UP = prepared(`
  UPDATE esims e
  SET status = coalesce(n.status, e.status), total_bytes = coalesce(n.total_bytes, e.total_bytes),
      thresholds_crossed = coalesce(n.thresholds_crossed::smallint[], e.thresholds_crossed),
      validity_days = coalesce(n.validity_days, e.validity_days), expires_at = coalesce(n.expires_at, e.expires_at),
      expiry_warning_at = coalesce(n.expiry_warning_at, e.expiry_warning_at),
      next_poll_at = coalesce(n.next_poll_at, e.next_poll_at),
      pooled = coalesce(n.pooled, e.pooled), plans = coalesce(n.plans::jsonb, e.plans), topped_up_at = n.topped_up_at, updated_at = n.topped_up_at
  FROM unnest($1::text[], $2::text[], $3::bigint[], $4::text[], $5::int[], $6::timestamptz[], $7::timestamptz[],
              $8::timestamptz[], $9::boolean[], $10::text[], $11::timestamptz[])
    AS n (id, status, total_bytes, thresholds_crossed, validity_days, expires_at, next_poll_at, topped_up_at, pooled,
          plans, expiry_warning_at)
  WHERE e.id = n.id`);

/** An ended eSIM and its position among all of them, oldest first. */
export interface EndedEsim {
  readonly id: string;
  /** PostgreSQL's text of the time, to the microsecond. */
  readonly endedAt: string;
}

/** An eSIM whose `esim.expiring` is due, and its position among all of them. */
export interface DueWarning {
  readonly id: string;
  /** PostgreSQL's text of the time, to the microsecond. */
  readonly dueAt: string;
}

/** While a live plan waits behind the one in use, our estimate of the end proves nothing: the provider decides. */
const HAS_ENDED = `status IN ('issued', 'active', 'depleted', 'suspended') AND coalesce(expires_at, install_by) <= now()
  AND NOT (mode = 'live' AND activated_at IS NOT NULL AND plans @> '[{"status": "queued"}]')`;

/** SQL of `esims`. */
@Injectable()
export class EsimsRepository {
  private readonly insertEsims: PreparedStatement;
  private readonly readSituations: PreparedStatement;

  constructor(
    @InjectEntityManager() private readonly manager: EntityManager,
    private readonly pages: KeysetPages,
  ) {
    this.insertEsims = insertStatement(columnsOf(manager, EsimEntity, ISSUED));
    this.readSituations = prepared(`
      SELECT o.status IN ('issued', 'partially_issued') AS is_issued,
             EXISTS (SELECT 1 FROM topups t WHERE t.esim_id = e.id AND t.status <> 'failed') AS topped_up,
             EXISTS (SELECT 1 FROM refund_requests r WHERE r.esim_id = e.id AND r.status = 'approved') AS refunded,
             clock_timestamp() AS situation_at, ${selectList(manager, EsimEntity, 'e')}
      FROM orders o JOIN esims e ON e.order_id = o.id WHERE o.id = ANY ($1) ORDER BY e.id`);
  }

  async listIdsOfOrders(tx: Tx, orderIds: readonly string[]): Promise<readonly string[]> {
    const { rows } = await sql<{ id: string }>(tx.manager, 'SELECT id FROM esims WHERE order_id = ANY ($1)', [
      orderIds,
    ]);
    return rows.map(({ id }) => id);
  }

  /** Deletes eSIMs of orders that are purged after their retention (D44). */
  async deleteOfOrders(tx: Tx, orderIds: readonly string[]): Promise<void> {
    await sql(tx.manager, 'DELETE FROM esims WHERE order_id = ANY ($1)', [orderIds]);
  }

  /**
   * Inserts eSIMs of one or many orders without waiting for a round trip; columns missing in `NewEsim` get their
   * defaults.
   */
  insert(tx: Tx, esims: readonly NewEsim[]): void {
    send(
      tx,
      this.insertEsims,
      ISSUED.map((property) => esims.map((esim) => esim[property])),
    );
  }

  async find(
    { partnerId, mode }: ReadScope,
    id: string,
    manager: EntityManager = this.manager,
  ): Promise<EsimEntity | null> {
    return manager.findOneBy(EsimEntity, { partnerId, mode: modeIn(mode), id });
  }

  /** An eSIM's sealed install data, read only to be shown (D25). */
  async getInstallSecrets(id: string): Promise<string> {
    const esim = await this.manager.findOneOrFail(EsimEntity, {
      where: { id },
      select: { id: true, installSecrets: true },
    });
    return esim.installSecrets;
  }

  /** The eSIM with its row locked until the transaction ends. */
  async findForUpdate(tx: Tx, scope: TenantScope, id: string): Promise<EsimEntity | null> {
    return tx.manager.findOne(EsimEntity, {
      where: { partnerId: scope.partnerId, mode: scope.mode, id },
      lock: { mode: 'pessimistic_write' },
    });
  }

  async getById(id: string, manager: EntityManager = this.manager): Promise<EsimEntity> {
    return manager.findOneByOrFail(EsimEntity, { id });
  }

  /** Returns the eSIMs in the order of `ids`; null for an id without an eSIM. */
  async findAllById(ids: readonly string[]): Promise<readonly (EsimEntity | null)[]> {
    const found = await this.manager.findBy(EsimEntity, { id: In([...new Set(ids)]) });
    const byId = new Map(found.map((esim) => [esim.id, esim]));
    return ids.map((id) => byId.get(id) ?? null);
  }

  /** The eSIMs with an ICCID, newest first; null as scope: of all partners in both modes. */
  async listByIccid(iccid: string, scope: ReadScope | null, limit: number): Promise<readonly EsimEntity[]> {
    return this.manager.find(EsimEntity, {
      where: { iccid, ...(scope && { partnerId: scope.partnerId, mode: modeIn(scope.mode) }) },
      order: { createdAt: 'DESC', id: 'DESC' },
      take: limit,
    });
  }

  /** The purchases for the eSIM: its order, then the completed top-ups, oldest first. */
  async listPlanPurchases({ id, orderId }: EsimEntity): Promise<readonly PlanPurchase[]> {
    const { rows } = await sql<PlanPurchase>(
      this.manager,
      `SELECT source, id, package_id AS "packageId", upstream_package_id AS "upstreamPackageId"
       FROM (SELECT 'order' AS source, id, package_id, upstream_package_id, NULL::timestamptz AS completed_at
             FROM orders WHERE id = $1
             UNION ALL
             SELECT 'topup', id, package_id, upstream_package_id, completed_at
             FROM topups WHERE esim_id = $2 AND status = 'completed') AS bought
       ORDER BY completed_at NULLS FIRST, id`,
      [orderId, id],
    );
    return rows;
  }

  /** The situations of orders, by their ids (D70). Only a transaction that locks the order may rely on one. */
  async listSituations(
    manager: EntityManager,
    orderIds: readonly string[],
  ): Promise<ReadonlyMap<string, OrderSituation>> {
    interface Row extends Record<string, unknown> {
      readonly is_issued: boolean;
      readonly topped_up: boolean;
      readonly refunded: boolean;
      readonly situation_at: Date;
      readonly order_id: string;
      readonly id: string;
    }
    const { rows } = await sql<Row>(manager, this.readSituations, [[...new Set(orderIds)]]);
    const byOrder = Map.groupBy(rows, ({ order_id: orderId }) => orderId);
    return new Map(
      [...byOrder].map(([orderId, some]) => [
        orderId,
        {
          isIssued: some[0]!.is_issued,
          esims: some.map((row) => rowToEntity(manager, EsimEntity, row)),
          readAt: some[0]!.situation_at,
          toppedUp: new Set(some.flatMap(({ id, topped_up: isToppedUp }) => (isToppedUp ? [id] : []))),
          refunded: new Set(some.flatMap(({ id, refunded }) => (refunded ? [id] : []))),
        },
      ]),
    );
  }

  /** Locks the eSIM's order until the end of `tx`, so that no top-up or cancellation begins beside a change (D40). */
  async lockOrder(tx: Tx, { orderId }: EsimEntity): Promise<void> {
    await sql(tx.manager, 'SELECT 1 FROM orders WHERE id = $1 FOR NO KEY UPDATE', [orderId]);
  }

  async findByIdForUpdate(tx: Tx, id: string): Promise<EsimEntity | null> {
    return tx.manager.findOne(EsimEntity, { where: { id }, lock: { mode: 'pessimistic_write' } });
  }

  /** Returns eSIMs ordered by id, with their rows locked until the transaction ends (D40). */
  async listByIdsForUpdate(tx: Tx, ids: readonly string[]): Promise<EsimEntity[]> {
    return tx.manager.find(EsimEntity, {
      where: { id: In([...ids]) },
      order: { id: 'ASC' },
      lock: { mode: 'pessimistic_write' },
    });
  }

  async listByOrders(manager: EntityManager, orderIds: readonly string[]): Promise<EsimEntity[]> {
    if (orderIds.length === 0) return [];
    return manager.find(EsimEntity, { where: { orderId: In([...orderIds]) }, order: { id: 'ASC' } });
  }

  async listByOrderForUpdate(tx: Tx, orderId: string): Promise<EsimEntity[]> {
    return tx.manager.find(EsimEntity, {
      where: { orderId },
      order: { id: 'ASC' },
      lock: { mode: 'pessimistic_write' },
    });
  }

  /** Changes an eSIM whose row `tx` has locked, and returns its new version (D48). */
  async update(tx: Tx, id: string, changes: Partial<EsimEntity>): Promise<number> {
    return updateVersioned(tx.manager, EsimEntity, id, changes);
  }

  /** Writes top-up changes by eSIM id, for rows that `tx` has locked, without waiting for a round trip. */
  updateToppedUp(tx: Tx, changesOf: ReadonlyMap<string, Partial<EsimEntity>>): void {
    const changes = [...changesOf.values()];
    send(tx, UPDATE_TOPPED_UP, [
      [...changesOf.keys()],
      changes.map(({ status }) => status ?? null),
      changes.map(({ totalBytes }) => totalBytes ?? null),
      changes.map(({ thresholdsCrossed }) => (thresholdsCrossed ? `{${thresholdsCrossed.join(',')}}` : null)),
      changes.map(({ validityDays }) => validityDays ?? null),
      changes.map(({ expiresAt }) => expiresAt ?? null),
      changes.map(({ nextPollAt }) => nextPollAt ?? null),
      changes.map(({ toppedUpAt }) => toppedUpAt ?? null),
      changes.map(({ pooled }) => pooled ?? null),
      changes.map(({ plans }) => (plans ? JSON.stringify(plans) : null)),
      changes.map(({ expiryWarningAt }) => expiryWarningAt ?? null),
    ]);
  }

  async list(
    { partnerId, mode }: PartnerScope,
    filters: EsimFilters,
    options: ListOptions,
  ): Promise<Page<EsimEntity>> {
    const modes = mode === undefined ? MODES : [mode];
    const queries = modes.map((each) => this.matching({ partnerId, mode: each }, filters));
    return this.pages.listMerged(queries, options);
  }

  private matching({ partnerId, mode }: TenantScope, filters: EsimFilters): SelectQueryBuilder<EsimEntity> {
    const query = this.manager
      .createQueryBuilder(EsimEntity, 't')
      .where('t.partner_id = :partnerId AND t.mode = :mode', { partnerId, mode });
    if (filters.status !== undefined) query.andWhere('t.status = :status', { status: filters.status });
    if (filters.orderId !== undefined) query.andWhere('t.order_id = :orderId', { orderId: filters.orderId });
    if (filters.iccid !== undefined) query.andWhere('t.iccid = :iccid', { iccid: filters.iccid });
    if (filters.label !== undefined) query.andWhere('t.label = :label', { label: filters.label });
    return query;
  }

  /** Whether the eSIM has ended by the database's clock, even if the sweep has not processed it yet. */
  async hasEnded(tx: Tx, id: string): Promise<boolean> {
    const { rows } = await sql(tx.manager, `SELECT 1 FROM esims WHERE id = $1 AND ${HAS_ENDED}`, [id]);
    return rows.length > 0;
  }

  /** eSIMs after `after` whose validity or installation deadline has passed by the database's clock. */
  async listEnded(mode: Mode, limit: number, after: EndedEsim | null): Promise<readonly EndedEsim[]> {
    const { rows } = await sql<{ id: string; ended_at: string }>(
      this.manager,
      // As text, which keeps the microseconds.
      `SELECT id, coalesce(expires_at, install_by)::text AS ended_at FROM esims
       WHERE mode = $1 AND ${HAS_ENDED} AND (coalesce(expires_at, install_by), id) > ($3::timestamptz, $4)
       ORDER BY coalesce(expires_at, install_by), id LIMIT $2`,
      [mode, limit, after?.endedAt ?? '-infinity', after?.id ?? ''],
    );
    return rows.map((row) => ({ id: row.id, endedAt: row.ended_at }));
  }

  /** eSIMs after `after` whose `esim.expiring` is due by the database's clock, oldest first. */
  async listDueWarnings(mode: Mode, limit: number, after: DueWarning | null): Promise<readonly DueWarning[]> {
    const { rows } = await sql<{ id: string; due_at: string }>(
      this.manager,
      // As text, which keeps the microseconds.
      `SELECT id, expiry_warning_at::text AS due_at FROM esims
       WHERE mode = $1 AND expiry_warning_at <= now() AND (expiry_warning_at, id) > ($3::timestamptz, $4)
       ORDER BY expiry_warning_at, id LIMIT $2`,
      [mode, limit, after?.dueAt ?? '-infinity', after?.id ?? ''],
    );
    return rows.map((row) => ({ id: row.id, dueAt: row.due_at }));
  }

  /** Sets when the next warnings of these eSIMs are due, whose rows `tx` has locked. Partners do not see it. */
  async setWarnings(tx: Tx, nextAt: ReadonlyMap<string, Date | null>): Promise<void> {
    await sql(
      tx.manager,
      `UPDATE esims e SET expiry_warning_at = n.at
       FROM unnest($1::text[], $2::timestamptz[]) AS n (id, at) WHERE e.id = n.id`,
      [[...nextAt.keys()], [...nextAt.values()]],
    );
  }
}
