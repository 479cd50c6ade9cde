import { Injectable } from '@nestjs/common';
import { InjectEntityManager } from '@nestjs/typeorm';
import { Column, CreateDateColumn, Entity, type EntityManager, IsNull, PrimaryColumn } from 'typeorm';
import type { Page } from '../common/page.js';
import { KeysetPages, type ListOptions, sql, type Tx } from '../infra/database/index.js';

/** Types of alerts for the portal team and support (`GET /alerts`). */
export const ALERT_TYPES = [
  'endpoint.blocked',
  'endpoint.disabled',
  'balance.low',
  'key.expiring',
  'order.needs_review',
  'topup.needs_review',
] as const;
export type AlertType = (typeof ALERT_TYPES)[number];

@Entity({ name: 'alerts' })
export class AlertEntity {
  @PrimaryColumn({ type: 'text' })
  id!: string;

  @Column({ type: 'text' })
  type!: AlertType;

  @Column({ name: 'partner_id', type: 'text', nullable: true })
  partnerId!: string | null;

  @Column({ name: 'subject_id', type: 'text' })
  subjectId!: string;

  @Column({ type: 'jsonb' })
  details!: Record<string, string | number | boolean | null>;

  @CreateDateColumn({ name: 'created_at', type: 'timestamptz' })
  createdAt!: Date;

  /** When the end of its cause was noticed; null while it is open. */
  @Column({ name: 'resolved_at', type: 'timestamptz', nullable: true })
  resolvedAt!: Date | null;
}

/** `open`: the cause persists, or its end is not noticed yet. */
export const ALERT_STATES = ['open', 'resolved'] as const;
export type AlertState = (typeof ALERT_STATES)[number];

export interface NewAlert {
  readonly type: AlertType;
  readonly partnerId: string | null;
  /** Id of the alert's subject. */
  readonly subjectId: string;
  /** Never a key or a secret. */
  readonly details?: Readonly<Record<string, string | number | boolean | null>>;
  /** Alerts with the same type, subject and key are stored once, however often they are raised. */
  readonly onceKey?: string;
}

/** Filters; `createdAfter` is inclusive, `createdBefore` exclusive (D11). */
export interface AlertFilters {
  readonly type?: AlertType | undefined;
  readonly state?: AlertState | undefined;
  readonly partnerId?: string | undefined;
  readonly subjectId?: string | undefined;
  readonly createdAfter?: Date | undefined;
  readonly createdBefore?: Date | undefined;
}

const CONDITIONS: Readonly<Record<Exclude<keyof AlertFilters, 'state'>, string>> = {
  type: 't.type = :type',
  partnerId: 't.partnerId = :partnerId',
  subjectId: 't.subjectId = :subjectId',
  createdAfter: 't.createdAt >= :createdAfter',
  createdBefore: 't.createdAt < :createdBefore',
};

/** The conditions of the partial indexes. */
const STATES: Readonly<Record<AlertState, string>> = {
  open: 't.resolved_at IS NULL',
  resolved: 't.resolved_at IS NOT NULL',
};

/** SQL of `alerts`. An alert changes once, when it is resolved. */
@Injectable()
export class AlertsRepository {
  constructor(
    @InjectEntityManager() private readonly manager: EntityManager,
    private readonly pages: KeysetPages,
  ) {}

  async insert(tx: Tx, id: string, alert: NewAlert): Promise<void> {
    await sql(
      tx.manager,
      `INSERT INTO alerts (id, type, partner_id, subject_id, details, once_key, created_at)
       VALUES ($1, $2, $3, $4, $5::jsonb, $6, clock_timestamp())
       ON CONFLICT (type, subject_id, once_key) WHERE once_key IS NOT NULL DO NOTHING`,
      [
        id,
        alert.type,
        alert.partnerId,
        alert.subjectId,
        JSON.stringify(alert.details ?? {}),
        alert.onceKey ?? null,
      ],
    );
  }

  /**
   * Deletes up to `limit` alerts that are older than `days` (D44) and returns their number. Conditions that persist are
   * raised again.
   */
  async purge(days: number, limit: number): Promise<number> {
    const { affected } = await sql(
      this.manager,
      `DELETE FROM alerts WHERE id = ANY (ARRAY(
         SELECT id FROM alerts WHERE created_at < now() - $1::int * interval '1 day' ORDER BY created_at, id LIMIT $2
         FOR UPDATE SKIP LOCKED))`,
      [days, limit],
    );
    return affected;
  }

  /** The open alerts about a subject. */
  async listOpenOf(tx: Tx, type: AlertType, subjectId: string): Promise<readonly AlertEntity[]> {
    return tx.manager.findBy(AlertEntity, { type, subjectId, resolvedAt: IsNull() });
  }

  /** Resolves alerts that are still open. */
  async resolve(tx: Tx, ids: readonly string[]): Promise<void> {
    await sql(
      tx.manager,
      'UPDATE alerts SET resolved_at = clock_timestamp() WHERE id = ANY ($1) AND resolved_at IS NULL',
      [ids],
    );
  }

  async isToldWithin(
    tx: Tx,
    { type, onceKey }: { readonly type: AlertType; readonly onceKey: string },
    ms: number,
  ): Promise<boolean> {
    const { rows } = await sql(
      tx.manager,
      `SELECT 1 FROM alerts WHERE created_at > now() - $3 * interval '1 millisecond' AND type = $1 AND once_key = $2
       LIMIT 1`,
      [type, onceKey, ms],
    );
    return rows.length > 0;
  }

  /** Oldest first, so that a reader can continue from the last one it has seen. */
  async list(filters: AlertFilters, options: ListOptions): Promise<Page<AlertEntity>> {
    const query = this.manager.createQueryBuilder(AlertEntity, 't');
    if (filters.state !== undefined) query.andWhere(STATES[filters.state]);
    for (const name of Object.keys(CONDITIONS) as (keyof typeof CONDITIONS)[]) {
      if (filters[name] !== undefined) query.andWhere(CONDITIONS[name], { [name]: filters[name] });
    }
    return this.pages.list(query, options, 'oldest_first');
  }
}
