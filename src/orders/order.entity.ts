import { Column, CreateDateColumn, Entity, PrimaryColumn, UpdateDateColumn } from 'typeorm';
import type { Mode } from '../common/mode.js';
import { bigintColumn } from '../infra/database/index.js';
import type { FailureCode } from '../providers/index.js';
import type { OrderStatus } from './order-state.js';

@Entity({ name: 'orders' })
export class OrderEntity {
  @PrimaryColumn({ type: 'text' })
  id!: string;

  @Column({ name: 'partner_id', type: 'text' })
  partnerId!: string;

  @Column({ type: 'text' })
  mode!: Mode;

  @Column({ type: 'text' })
  status!: OrderStatus;

  @Column({ name: 'package_id', type: 'text' })
  packageId!: string;

  @Column({ type: 'int' })
  quantity!: number;

  @Column({ name: 'quantity_issued', type: 'int' })
  quantityIssued!: number;

  @Column({ name: 'quantity_failed', type: 'int' })
  quantityFailed!: number;

  @Column({ name: 'unit_price_amount', type: 'bigint', transformer: bigintColumn })
  unitPriceAmount!: number;

  @Column({ name: 'refunded_amount', type: 'bigint', transformer: bigintColumn })
  refundedAmount!: number;

  @Column({ type: 'text' })
  currency!: string;

  /** The partner's own id, unique per partner and mode for ever. */
  @Column({ type: 'text', nullable: true })
  reference!: string | null;

  @Column({ type: 'jsonb' })
  metadata!: Record<string, string>;

  @Column({ type: 'text' })
  provider!: string;

  /** D19: fixed before the first upstream call and used by every one. */
  @Column({ name: 'provider_reference', type: 'text' })
  providerReference!: string;

  @Column({ name: 'failure_code', type: 'text', nullable: true })
  failureCode!: FailureCode | null;

  @Column({ name: 'failure_reason', type: 'text', nullable: true })
  failureReason!: string | null;

  @Column({ name: 'cancel_failure_code', type: 'text', nullable: true })
  cancelFailureCode!: FailureCode | null;

  @Column({ name: 'cancel_failure_reason', type: 'text', nullable: true })
  cancelFailureReason!: string | null;

  @Column({ name: 'status_before_cancel', type: 'text', nullable: true })
  statusBeforeCancel!: OrderStatus | null;

  /** Times that a worker took the order up. */
  @Column({ name: 'upstream_attempts', type: 'int' })
  upstreamAttempts!: number;

  /** When a worker is to look at the order next; null when nothing is owed. */
  @Column({ name: 'next_attempt_at', type: 'timestamptz', nullable: true })
  nextAttemptAt!: Date | null;

  @Column({ name: 'lease_until', type: 'timestamptz', nullable: true })
  leaseUntil!: Date | null;

  @Column({ type: 'bigint', transformer: bigintColumn })
  fence!: number;

  @Column({ name: 'accepted_request_id', type: 'text' })
  acceptedRequestId!: string;

  @CreateDateColumn({ name: 'created_at', type: 'timestamptz' })
  createdAt!: Date;

  @UpdateDateColumn({ name: 'updated_at', type: 'timestamptz' })
  updatedAt!: Date;

  @Column({ name: 'issued_at', type: 'timestamptz', nullable: true })
  issuedAt!: Date | null;

  @Column({ name: 'failed_at', type: 'timestamptz', nullable: true })
  failedAt!: Date | null;
}
