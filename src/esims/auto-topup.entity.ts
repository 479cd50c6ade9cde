import { Column, CreateDateColumn, Entity, PrimaryColumn, UpdateDateColumn } from 'typeorm';
import type { ErrorCode } from '../common/errors/index.js';
import type { Mode } from '../common/mode.js';
import { bigintColumn } from '../infra/database/index.js';
import type { EsimEntity } from './esim.entity.js';
import type { USAGE_THRESHOLDS } from './esim-transition.js';

/** Rule of an eSIM's automatic top-ups. The lock of the eSIM's row guards it. */
@Entity({ name: 'esim_auto_topups' })
export class AutoTopupEntity {
  @PrimaryColumn({ name: 'esim_id', type: 'text' })
  esimId!: string;

  /** Differs from that of an earlier rule of the eSIM, whose top-ups no longer count. */
  @Column({ type: 'text' })
  id!: string;

  @Column({ type: 'text' })
  mode!: Mode;

  @Column({ name: 'at_percent', type: 'smallint' })
  atPercent!: (typeof USAGE_THRESHOLDS)[number];

  @Column({ name: 'package_id', type: 'text' })
  packageId!: string;

  @Column({ name: 'max_times', type: 'int' })
  maxTimes!: number;

  @Column({ name: 'max_price_amount', type: 'bigint', transformer: bigintColumn })
  maxPriceAmount!: number;

  @Column({ name: 'max_price_currency', type: 'text' })
  maxPriceCurrency!: string;

  /** The key that set the rule, if it has a spend limit: the top-ups count toward that limit (D62). */
  @Column({ name: 'limited_key_id', type: 'text', nullable: true })
  limitedKeyId!: string | null;

  /** Time of the next try to place the top-up of a crossing; null when none waits. */
  @Column({ name: 'due_at', type: 'timestamptz', nullable: true })
  dueAt!: Date | null;

  /** Why the last crossing got no top-up; null when it got one. */
  @Column({ name: 'last_failure_code', type: 'text', nullable: true })
  lastFailureCode!: ErrorCode | null;

  @Column({ name: 'last_failed_at', type: 'timestamptz', nullable: true })
  lastFailedAt!: Date | null;

  @CreateDateColumn({ name: 'created_at', type: 'timestamptz' })
  createdAt!: Date;

  /** Time of the last change of the terms. */
  @UpdateDateColumn({ name: 'updated_at', type: 'timestamptz' })
  updatedAt!: Date;
}

/** Whether the eSIM's usage in this data cycle has crossed the rule's level. A top-up in between ends the cycle (D24). */
export function isCrossed(
  { atPercent }: Pick<AutoTopupEntity, 'atPercent'>,
  { thresholdsCrossed }: Pick<EsimEntity, 'thresholdsCrossed'>,
): boolean {
  return thresholdsCrossed.some((level) => level >= atPercent);
}
