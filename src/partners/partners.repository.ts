import { Injectable } from '@nestjs/common';
import { InjectEntityManager } from '@nestjs/typeorm';
import {
  Column,
  CreateDateColumn,
  Entity,
  type EntityManager,
  MoreThan,
  PrimaryColumn,
  UpdateDateColumn,
} from 'typeorm';
import { newId } from '../common/ids.js';
import type { Page } from '../common/page.js';
import type { PartnerBrand } from '../common/partner-brand.js';
import { KeysetPages, type ListOptions, type Tx } from '../infra/database/index.js';

/** A suspended partner's calls are refused; everything else continues (decisions, Suspension). */
export const PARTNER_STATUSES = ['active', 'suspended'] as const;
export type PartnerStatus = (typeof PARTNER_STATUSES)[number];

@Entity({ name: 'partners' })
export class PartnerEntity {
  @PrimaryColumn({ type: 'text' })
  id!: string;

  @Column({ type: 'text' })
  name!: string;

  @Column({ type: 'text', nullable: true })
  email!: string | null;

  @Column({ type: 'text' })
  status!: PartnerStatus;

  /** The portal team's reason for the suspension; null without one, and while active. */
  @Column({ name: 'suspended_reason', type: 'text', nullable: true })
  suspendedReason!: string | null;

  /** Only the fields that were set; `toPartnerBrand` adds the others. */
  @Column({ type: 'jsonb', insert: false })
  brand!: Partial<PartnerBrand>;

  /** Time of the last suspension, which permanently ends earlier portal sessions (D50). */
  @Column({ name: 'suspended_at', type: 'timestamptz', nullable: true, select: false })
  suspendedAt!: Date | null;

  @CreateDateColumn({ name: 'created_at', type: 'timestamptz' })
  createdAt!: Date;

  @UpdateDateColumn({ name: 'updated_at', type: 'timestamptz' })
  updatedAt!: Date;
}

export interface NewPartner {
  /** A fixed id for seeds; defaults to a new one. */
  readonly id?: string;
  readonly name: string;
  readonly email: string | null;
}

export type PartnerChanges = Partial<Pick<PartnerEntity, 'name' | 'email' | 'brand'>>;

/** Sorts after every other character. */
const GREATEST_CHARACTER = '\u{10FFFF}';

/** SQL of `partners`. */
@Injectable()
export class PartnersRepository {
  constructor(
    @InjectEntityManager() private readonly manager: EntityManager,
    private readonly pages: KeysetPages,
  ) {}

  async insert(tx: Tx, partner: NewPartner): Promise<PartnerEntity> {
    const id = partner.id ?? newId('ptn');
    await tx.manager.insert(PartnerEntity, { ...partner, id, status: 'active' });
    return tx.manager.findOneByOrFail(PartnerEntity, { id });
  }

  async findById(id: string, tx?: Tx): Promise<PartnerEntity | null> {
    return (tx?.manager ?? this.manager).findOneBy(PartnerEntity, { id });
  }

  /**
   * The partner, locked until the end of `tx`. NO KEY UPDATE, because inserts that only refer to the partner (an order,
   * an eSIM) take KEY SHARE and must not wait for administration.
   */
  async findByIdForUpdate(tx: Tx, id: string): Promise<PartnerEntity | null> {
    return tx.manager.findOne(PartnerEntity, { where: { id }, lock: { mode: 'for_no_key_update' } });
  }

  /** The partner, protected from changes until the end of `tx`. */
  async findByIdForShare(tx: Tx, id: string): Promise<PartnerEntity | null> {
    return tx.manager.findOne(PartnerEntity, { where: { id }, lock: { mode: 'pessimistic_read' } });
  }

  async update(tx: Tx, id: string, changes: PartnerChanges): Promise<void> {
    await tx.manager.update(PartnerEntity, { id }, changes);
  }

  /**
   * False when there is no such partner or it already has that status.
   * @param reason of a suspension; ending one clears it
   */
  async changeStatus(
    tx: Tx,
    id: string,
    { from, to }: { readonly from: PartnerStatus; readonly to: PartnerStatus },
    reason: string | null,
  ): Promise<boolean> {
    const change =
      to === 'suspended'
        ? { status: to, suspendedReason: reason, suspendedAt: () => 'clock_timestamp()' }
        : { status: to, suspendedReason: null };
    const { affected } = await tx.manager.update(PartnerEntity, { id, status: from }, change);
    return affected === 1;
  }

  /** Ids of active partners after `after`, in their order. */
  async listActiveIds(tx: Tx, after: string, limit: number): Promise<readonly string[]> {
    const found = await tx.manager.find(PartnerEntity, {
      where: { status: 'active', id: MoreThan(after) },
      order: { id: 'ASC' },
      take: limit,
      select: { id: true },
    });
    return found.map(({ id }) => id);
  }

  /** Partners whose name or e-mail address begins with the text, in any case of ASCII letters; by name. */
  async listByPrefix(text: string, limit: number): Promise<readonly PartnerEntity[]> {
    const start = (column: 'name' | 'email') =>
      this.manager
        .createQueryBuilder(PartnerEntity, 't')
        // in the collation of the columns: another one would change letters that theirs keeps
        .where(
          `lower(t.${column}) >= lower(:text COLLATE "C") AND lower(t.${column}) < lower(:text COLLATE "C") || :end`,
          { text, end: GREATEST_CHARACTER },
        )
        .orderBy(`lower(t.${column})`)
        .limit(limit)
        .getMany();
    const found = [...(await start('name')), ...(await start('email'))];
    return [...new Map(found.map((partner) => [partner.id, partner])).values()].slice(0, limit);
  }

  async list(
    filters: { status: PartnerStatus | undefined },
    options: ListOptions,
  ): Promise<Page<PartnerEntity>> {
    const query = this.manager.createQueryBuilder(PartnerEntity, 't');
    if (filters.status !== undefined) query.where('t.status = :status', { status: filters.status });
    return this.pages.list(query, options);
  }
}
