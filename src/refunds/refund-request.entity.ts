import { Column, CreateDateColumn, Entity, PrimaryColumn } from 'typeorm';
import type { Mode } from '../common/mode.js';
import { bigintColumn } from '../infra/database/index.js';

export const REFUND_STATUSES = ['pending', 'approved', 'rejected', 'canceled'] as const;
export type RefundStatus = (typeof REFUND_STATUSES)[number];

export const REFUND_REASONS = ['not_working', 'wrong_device', 'duplicate', 'other'] as const;
export type RefundReason = (typeof REFUND_REASONS)[number];

/** A partner's request to refund an eSIM. Changes once, from `pending` to any other status. */
@Entity({ name: 'refund_requests' })
export class RefundRequestEntity {
  @PrimaryColumn({ type: 'text' })
  id!: string;

  @Column({ name: 'partner_id', type: 'text' })
  partnerId!: string;

  @Column({ type: 'text' })
  mode!: Mode;

  @Column({ name: 'esim_id', type: 'text' })
  esimId!: string;

  @Column({ name: 'order_id', type: 'text' })
  orderId!: string;

  @Column({ type: 'text' })
  reason!: RefundReason;

  @Column({ type: 'text', nullable: true })
  details!: string | null;

  @Column({ type: 'text' })
  status!: RefundStatus;

  /** The refund, in minor units; null unless it is approved. */
  @Column({ type: 'bigint', nullable: true, transformer: bigintColumn })
  amount!: number | null;

  /** The currency of the order. */
  @Column({ type: 'text' })
  currency!: string;

  /** The portal team's answer, which the partner sees. */
  @Column({ type: 'text', nullable: true })
  note!: string | null;

  @Column({ name: 'decided_at', type: 'timestamptz', nullable: true })
  decidedAt!: Date | null;

  @CreateDateColumn({ name: 'created_at', type: 'timestamptz' })
  createdAt!: Date;
}
