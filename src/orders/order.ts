import { Column, Entity } from 'typeorm';
import type { ActivationPolicy } from '../catalog/index.js';
import { type Money, multiplyMoney } from '../common/money.js';
import { type EsimEntity, toProviderEsim } from '../esims/index.js';
import { bigintColumn } from '../infra/database/index.js';
import type { FailureCode, ProviderCancelRequest, ProviderOrderRequest } from '../providers/index.js';
import { Purchase, type PurchaseFilters, type PurchaseKind, toProviderRequest } from '../purchases/index.js';

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

/**
 * Allowed status changes (D22). `canceling` returns to the status before when the provider refuses the cancellation.
 */
const TRANSITIONS: Readonly<Record<OrderStatus, readonly OrderStatus[]>> = {
  pending: ['processing'],
  processing: ['issued', 'partially_issued', 'failed'],
  issued: ['canceling'],
  partially_issued: ['canceling'],
  failed: [],
  canceling: ['canceled', 'issued', 'partially_issued'],
  canceled: [],
};

/** Statuses from which an order may change to `to`; every status UPDATE names them in its WHERE. */
export function statusesBefore(to: OrderStatus): readonly OrderStatus[] {
  return ORDER_STATUSES.filter((from) => TRANSITIONS[from].includes(to));
}

@Entity({ name: 'orders' })
export class OrderEntity extends Purchase {
  @Column({ type: 'text' })
  status!: OrderStatus;

  @Column({ type: 'int' })
  quantity!: number;

  @Column({ name: 'quantity_issued', type: 'int' })
  quantityIssued!: number;

  @Column({ name: 'quantity_failed', type: 'int' })
  quantityFailed!: number;

  /** Data of each eSIM at the time of sale (D47); null for unlimited. The package may change or be withdrawn later. */
  @Column({ name: 'data_bytes', type: 'bigint', nullable: true, transformer: bigintColumn })
  dataBytes!: number | null;

  @Column({ name: 'validity_days', type: 'int' })
  validityDays!: number;

  @Column({ name: 'activation_policy', type: 'text' })
  activationPolicy!: ActivationPolicy;

  /** Term of installation at the time of sale; null if the package stated none. */
  @Column({ name: 'install_within_days', type: 'int', nullable: true })
  installWithinDays!: number | null;

  @Column({ name: 'unit_price_amount', type: 'bigint', transformer: bigintColumn })
  unitPriceAmount!: number;

  @Column({ name: 'refunded_amount', type: 'bigint', transformer: bigintColumn })
  refundedAmount!: number;

  @Column({ name: 'cancel_failure_code', type: 'text', nullable: true })
  cancelFailureCode!: FailureCode | null;

  @Column({ name: 'cancel_failure_reason', type: 'text', nullable: true })
  cancelFailureReason!: string | null;

  @Column({ name: 'status_before_cancel', type: 'text', nullable: true })
  statusBeforeCancel!: OrderStatus | null;

  @Column({ name: 'cancel_requested_at', type: 'timestamptz', nullable: true })
  cancelRequestedAt!: Date | null;

  /** The eSIM that it replaces. It is due once that one is canceled, whose refund it holds (D70); null for most orders. */
  @Column({ type: 'text', nullable: true })
  replaces!: string | null;

  @Column({ name: 'upstream_attempts', type: 'int' })
  attempts!: number;

  @Column({ name: 'issued_at', type: 'timestamptz', nullable: true })
  issuedAt!: Date | null;
}

export const ORDERS: PurchaseKind<OrderEntity> = {
  name: 'order',
  noun: 'order',
  table: 'orders',
  entity: OrderEntity,
};

/** An order with its eSIMs, as the API shows it. */
export interface OrderWithEsims {
  readonly order: OrderEntity;
  readonly esims: readonly EsimEntity[];
}

export interface OrderFilters extends PurchaseFilters {
  readonly status?: OrderStatus | undefined;
  readonly createdAfter?: Date | undefined;
  readonly createdBefore?: Date | undefined;
}

/** Price of `count` of the order's eSIMs at acceptance. */
export function priceOf(order: OrderEntity, count: number): Money {
  return multiplyMoney({ amount: order.unitPriceAmount, currency: order.currency }, count);
}

/** The sum of an eSIM's approved refund requests. */
export interface EsimRefund {
  readonly orderId: string;
  readonly esimId: string;
  readonly amount: number;
}

/**
 * The part of the eSIM's price that is not refunded yet. A cancellation refunds what the approved requests left. An
 * eSIM that only its wholesaler canceled is not refunded.
 */
export function refundableOf(
  order: OrderEntity,
  esim: Pick<EsimEntity, 'id' | 'status' | 'revokedAt'>,
  refunds: readonly EsimRefund[],
): number {
  const ofOrder = refunds.filter(({ orderId }) => orderId === order.id);
  const byRequests = sumOf(ofOrder);
  const byCancellation = order.refundedAmount - priceOf(order, order.quantityFailed).amount - byRequests;
  if (esim.status === 'canceled' && esim.revokedAt === null && byCancellation > 0) return 0;
  return order.unitPriceAmount - sumOf(ofOrder.filter(({ esimId }) => esimId === esim.id));
}

function sumOf(refunds: readonly EsimRefund[]): number {
  return refunds.reduce((sum, { amount }) => sum + amount, 0);
}

/** The eSIMs that earlier partial cancellations did not cancel. */
export function uncanceled(esims: readonly EsimEntity[]): readonly EsimEntity[] {
  return esims.filter((esim) => esim.status !== 'canceled');
}

/** The eSIMs that a cancellation of the order concerns: one that is being replaced, or else all. */
export function canceledWith(esims: readonly EsimEntity[]): readonly EsimEntity[] {
  const replaced = esims.filter((esim) => esim.pendingAction === 'replace');
  return replaced.length > 0 ? replaced : uncanceled(esims);
}

/** The request of every provider call about the order: fixed at acceptance (D19). */
export function toProviderOrderRequest(order: OrderEntity): ProviderOrderRequest {
  return { ...toProviderRequest(order), quantity: order.quantity };
}

/** The request of every provider call to cancel these eSIMs of the order. */
export function toProviderCancelRequest(
  order: OrderEntity,
  esims: readonly EsimEntity[],
): ProviderCancelRequest {
  return {
    reference: order.providerReference,
    quantity: order.quantity,
    esims: esims.map(toProviderEsim),
  };
}
