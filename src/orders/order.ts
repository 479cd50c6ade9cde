import { Column, CreateDateColumn, Entity, PrimaryColumn, UpdateDateColumn } from 'typeorm';
import type { ActivationPolicy } from '../catalog/index.js';
import { earliestOf } from '../common/clock.js';
import type { Mode } from '../common/mode.js';
import { type Money, multiplyMoney } from '../common/money.js';
import type { EsimEntity } from '../esims/index.js';
import { bigintColumn } from '../infra/database/index.js';
import {
  type FailureCode,
  type ProviderCancelRequest,
  type ProviderOrderRequest,
  unitCostOf,
} from '../providers/index.js';

export const ORDER_STATUSES = [
  'pending',
  'processing',
  'issued',
  'partially_issued',
  'failed',
  'canceling',
  'canceled',
] as const;
export type OrderStatus = (typeof ORDER_STATUSES)[number];

/** D22. `canceling` returns to where it was when the provider refuses the cancellation. */
const TRANSITIONS: Readonly<Record<OrderStatus, readonly OrderStatus[]>> = {
  pending: ['processing'],
  processing: ['issued', 'partially_issued', 'failed'],
  issued: ['canceling'],
  partially_issued: ['canceling'],
  failed: [],
  canceling: ['canceled', 'issued', 'partially_issued'],
  canceled: [],
};

/** Statuses from which an order may go to `to`; every UPDATE of a status names them in its WHERE. */
export function statusesBefore(to: OrderStatus): readonly OrderStatus[] {
  return ORDER_STATUSES.filter((from) => TRANSITIONS[from].includes(to));
}

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

  /** Grows by one with each change that a partner can see (D48); the database counts. */
  @Column({ type: 'int', insert: false, update: false })
  version!: number;

  @Column({ name: 'package_id', type: 'text' })
  packageId!: string;

  @Column({ type: 'int' })
  quantity!: number;

  @Column({ name: 'quantity_issued', type: 'int' })
  quantityIssued!: number;

  @Column({ name: 'quantity_failed', type: 'int' })
  quantityFailed!: number;

  /** What each eSIM of the order was sold with (D47); null: unlimited. The package may change or be withdrawn later. */
  @Column({ name: 'data_bytes', type: 'bigint', nullable: true, transformer: bigintColumn })
  dataBytes!: number | null;

  @Column({ name: 'validity_days', type: 'int' })
  validityDays!: number;

  @Column({ name: 'activation_policy', type: 'text' })
  activationPolicy!: ActivationPolicy;

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

  /** D19: fixed before the first provider call and used by every one. */
  @Column({ name: 'provider_reference', type: 'text' })
  providerReference!: string;

  /** The provider's name of the package, as it was at acceptance. */
  @Column({ name: 'upstream_package_id', type: 'text' })
  upstreamPackageId!: string;

  /** What one cost at the provider at acceptance, in millionths of the currency's unit; null when nobody charges for it. */
  @Column({ name: 'unit_cost_micros', type: 'bigint', nullable: true, transformer: bigintColumn })
  unitCostMicros!: number | null;

  @Column({ name: 'unit_cost_currency', type: 'text', nullable: true })
  unitCostCurrency!: string | null;

  /** The last placement that may have taken effect at the provider; null: none has ever left. */
  @Column({ name: 'upstream_placed_at', type: 'timestamptz', nullable: true })
  upstreamPlacedAt!: Date | null;

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

  @Column({ name: 'cancel_requested_at', type: 'timestamptz', nullable: true })
  cancelRequestedAt!: Date | null;

  /** Times that a worker took the order up. */
  @Column({ name: 'upstream_attempts', type: 'int' })
  upstreamAttempts!: number;

  /** The class of the last attempt's error, for support. */
  @Column({ name: 'last_error', type: 'text', nullable: true })
  lastError!: string | null;

  /** When a worker is to look at the order next; null when nothing is owed. */
  @Column({ name: 'next_attempt_at', type: 'timestamptz', nullable: true })
  nextAttemptAt!: Date | null;

  @Column({ name: 'lease_until', type: 'timestamptz', nullable: true })
  leaseUntil!: Date | null;

  @Column({ type: 'bigint', transformer: bigintColumn })
  fence!: number;

  @Column({ name: 'accepted_request_id', type: 'text' })
  acceptedRequestId!: string;

  /** Of the call that accepted it (D53); null when that was not traced. */
  @Column({ type: 'text', nullable: true })
  traceparent!: string | null;

  @CreateDateColumn({ name: 'created_at', type: 'timestamptz' })
  createdAt!: Date;

  @UpdateDateColumn({ name: 'updated_at', type: 'timestamptz' })
  updatedAt!: Date;

  @Column({ name: 'issued_at', type: 'timestamptz', nullable: true })
  issuedAt!: Date | null;

  @Column({ name: 'failed_at', type: 'timestamptz', nullable: true })
  failedAt!: Date | null;
}

/** An order with its eSIMs, as the API shows it. */
export interface OrderWithEsims {
  readonly order: OrderEntity;
  readonly esims: readonly EsimEntity[];
}

export interface OrderFilters {
  readonly status?: OrderStatus | undefined;
  readonly reference?: string | undefined;
  readonly createdAfter?: Date | undefined;
  readonly createdBefore?: Date | undefined;
}

/** The price of `count` eSIMs of the order, as it was at acceptance. */
export function priceOf(order: OrderEntity, count: number): Money {
  return multiplyMoney({ amount: order.unitPriceAmount, currency: order.currency }, count);
}

/** The eSIMs that an earlier, partial cancellation has not taken back. */
export function uncanceled(esims: readonly EsimEntity[]): readonly EsimEntity[] {
  return esims.filter((esim) => esim.status !== 'canceled');
}

/** The order as every provider call about it names it: fixed at acceptance (D19). */
export function toProviderOrderRequest(order: OrderEntity): ProviderOrderRequest {
  return {
    reference: order.providerReference,
    packageId: order.packageId,
    upstreamPackageId: order.upstreamPackageId,
    quantity: order.quantity,
    unitCost: unitCostOf(order),
    // What is claimed after a restore was bought before its order was accepted again (D54).
    acceptedAt: earliestOf(order.createdAt, order.upstreamPlacedAt),
  };
}

/** The cancellation of these eSIMs of the order, as every provider call about it names it. */
export function toProviderCancelRequest(
  order: OrderEntity,
  esims: readonly EsimEntity[],
): ProviderCancelRequest {
  return {
    reference: order.providerReference,
    quantity: order.quantity,
    esims: esims.map(({ providerEsimId, iccid, createdAt }) => ({
      providerEsimId,
      iccid,
      issuedAt: createdAt,
    })),
  };
}
