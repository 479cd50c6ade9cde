import { Injectable } from '@nestjs/common';
import { InjectEntityManager } from '@nestjs/typeorm';
import { Column, CreateDateColumn, Entity, type EntityManager, PrimaryColumn } from 'typeorm';
import type { Page } from '../common/page.js';
import { KeysetPages, type ListOptions, sql, type Tx } from '../infra/database/index.js';

@Entity({ name: 'audit_log' })
export class AuditEntryEntity {
  @PrimaryColumn({ type: 'text' })
  id!: string;

  @Column({ type: 'text' })
  actor!: string;

  @Column({ name: 'portal_user', type: 'text', nullable: true })
  portalUser!: string | null;

  /** The portal session of the change. */
  @Column({ name: 'session_id', type: 'text', nullable: true })
  sessionId!: string | null;

  @Column({ type: 'text' })
  action!: string;

  @Column({ name: 'partner_id', type: 'text', nullable: true })
  partnerId!: string | null;

  @Column({ name: 'subject_id', type: 'text' })
  subjectId!: string;

  @Column({ type: 'jsonb' })
  details!: Record<string, string | number | boolean | null | string[]>;

  @Column({ name: 'request_id', type: 'text', nullable: true })
  requestId!: string | null;

  @CreateDateColumn({ name: 'created_at', type: 'timestamptz' })
  createdAt!: Date;
}

/** Filters; `createdAfter` is inclusive, `createdBefore` exclusive (D11). */
export interface AuditFilters {
  readonly partnerId: string | undefined;
  readonly subjectId: string | undefined;
  readonly actor: string | undefined;
  readonly action: string | undefined;
  readonly createdAfter: Date | undefined;
  readonly createdBefore: Date | undefined;
}

const CONDITIONS: Readonly<Record<keyof AuditFilters, string>> = {
  partnerId: 't.partnerId = :partnerId',
  subjectId: 't.subjectId = :subjectId',
  actor: 't.actor = :actor',
  action: 't.action = :action',
  createdAfter: 't.createdAt >= :createdAfter',
  createdBefore: 't.createdAt < :createdBefore',
};

/** SQL of `audit_log`. Entries are never changed or deleted. */
@Injectable()
export class AuditRepository {
  constructor(
    @InjectEntityManager() private readonly manager: EntityManager,
    private readonly pages: KeysetPages,
  ) {}

  async insert(tx: Tx, entry: Omit<AuditEntryEntity, 'createdAt'>): Promise<void> {
    await tx.manager.insert(AuditEntryEntity, entry);
  }

  /** Returns the given ids that exist in the table. */
  async idsOf(ids: readonly string[]): Promise<ReadonlySet<string>> {
    const { rows } = await sql<{ id: string }>(this.manager, 'SELECT id FROM audit_log WHERE id = ANY ($1)', [
      ids,
    ]);
    return new Set(rows.map(({ id }) => id));
  }

  async list(filters: AuditFilters, options: ListOptions): Promise<Page<AuditEntryEntity>> {
    const query = this.manager.createQueryBuilder(AuditEntryEntity, 't');
    for (const name of Object.keys(CONDITIONS) as (keyof AuditFilters)[]) {
      if (filters[name] !== undefined) query.andWhere(CONDITIONS[name], { [name]: filters[name] });
    }
    return this.pages.list(query, options);
  }
}
