import { ApiProperty } from '@nestjs/swagger';
import { MODES, type Mode } from '../../common/mode.js';
import { MoneyResponse } from '../../infra/http/index.js';
import { ORDER_STATUSES, type OrderEntity, type OrderStatus, priceOf } from '../../orders/index.js';
import { TOPUP_STATUSES, type TopupEntity, type TopupStatus } from '../../topups/index.js';
import type { NeedingReview } from '../needs-review.js';

/** Facts that support needs to settle an order with its provider. */
export class OrderReviewResponse {
  @ApiProperty({ type: String, example: 'ord_01KAEXAMPLE0000000000000000' })
  order_id!: string;

  @ApiProperty({ type: String, example: 'ptn_01KAEXAMPLE000000000000000' })
  partner_id!: string;

  @ApiProperty({ enum: MODES })
  mode!: Mode;

  @ApiProperty({ enum: ORDER_STATUSES })
  status!: OrderStatus;

  @ApiProperty({ type: String, nullable: true })
  reference!: string | null;

  @ApiProperty({ type: String })
  package_id!: string;

  @ApiProperty({ type: 'integer', example: 1 })
  quantity!: number;

  @ApiProperty({ type: MoneyResponse })
  total!: MoneyResponse;

  @ApiProperty({ type: String, example: 'sandbox' })
  provider!: string;

  @ApiProperty({ type: String, description: "The wholesaler's id of the order." })
  provider_reference!: string;

  @ApiProperty({ type: String, description: "The wholesaler's id of the package." })
  upstream_package_id!: string;

  @ApiProperty({ type: 'integer', description: 'How often a worker has processed the order.' })
  upstream_attempts!: number;

  @ApiProperty({ type: String, nullable: true, example: 'ProviderOutcomeUnknown' })
  last_error!: string | null;

  @ApiProperty({
    type: String,
    format: 'date-time',
    description: 'Since when the order has been waiting for the wholesaler.',
  })
  since!: string;

  @ApiProperty({
    type: String,
    format: 'date-time',
    nullable: true,
    description: 'The time of the last placement.',
  })
  placed_at!: string | null;

  @ApiProperty({ type: String, format: 'date-time', nullable: true })
  next_attempt_at!: string | null;

  @ApiProperty({ type: String, format: 'date-time' })
  created_at!: string;

  @ApiProperty({ type: String, description: 'The call that placed the order.' })
  request_id!: string;
}

export function toOrderReviewResponse({
  purchase: order,
  since,
}: NeedingReview<OrderEntity>): OrderReviewResponse {
  return {
    order_id: order.id,
    partner_id: order.partnerId,
    mode: order.mode,
    status: order.status,
    reference: order.reference,
    package_id: order.packageId,
    quantity: order.quantity,
    total: priceOf(order, order.quantity),
    provider: order.provider,
    provider_reference: order.providerReference,
    upstream_package_id: order.upstreamPackageId,
    upstream_attempts: order.attempts,
    last_error: order.lastError,
    since: since.toISOString(),
    placed_at: order.upstreamPlacedAt?.toISOString() ?? null,
    next_attempt_at: order.nextAttemptAt?.toISOString() ?? null,
    created_at: order.createdAt.toISOString(),
    request_id: order.acceptedRequestId,
  };
}

/** Facts that support needs to settle a top-up with its provider. */
export class TopupReviewResponse {
  @ApiProperty({ type: String, example: 'top_01KAEXAMPLE0000000000000000' })
  topup_id!: string;

  @ApiProperty({ type: String, example: 'ptn_01KAEXAMPLE000000000000000' })
  partner_id!: string;

  @ApiProperty({ enum: MODES })
  mode!: Mode;

  @ApiProperty({ enum: TOPUP_STATUSES })
  status!: TopupStatus;

  @ApiProperty({ type: String, nullable: true })
  reference!: string | null;

  @ApiProperty({ type: String, example: 'esim_01KAEXAMPLE0000000000000000' })
  esim_id!: string;

  @ApiProperty({ type: String, pattern: '^[0-9]{18,20}$', example: '8910300000001234567' })
  iccid!: string;

  @ApiProperty({ type: String })
  package_id!: string;

  @ApiProperty({ type: MoneyResponse })
  price!: MoneyResponse;

  @ApiProperty({ type: String, example: 'sandbox' })
  provider!: string;

  @ApiProperty({ type: String, description: "The wholesaler's id of the top-up." })
  provider_reference!: string;

  @ApiProperty({ type: String, description: "The wholesaler's id of the package." })
  upstream_package_id!: string;

  @ApiProperty({ type: 'integer', description: 'How often a worker has processed the top-up.' })
  attempts!: number;

  @ApiProperty({ type: String, nullable: true, example: 'ProviderOutcomeUnknown' })
  last_error!: string | null;

  @ApiProperty({
    type: String,
    format: 'date-time',
    description: 'Since when the top-up has been waiting for the wholesaler: the time of its acceptance.',
  })
  since!: string;

  @ApiProperty({
    type: String,
    format: 'date-time',
    nullable: true,
    description: 'The time of the last placement that may have taken effect; null if there was none.',
  })
  upstream_placed_at!: string | null;

  @ApiProperty({ type: String, format: 'date-time', nullable: true })
  next_attempt_at!: string | null;

  @ApiProperty({ type: String, description: 'The call that requested the top-up.' })
  request_id!: string;
}

export function toTopupReviewResponse({
  purchase: topup,
  since,
}: NeedingReview<TopupEntity>): TopupReviewResponse {
  return {
    topup_id: topup.id,
    partner_id: topup.partnerId,
    mode: topup.mode,
    status: topup.status,
    reference: topup.reference,
    esim_id: topup.esimId,
    iccid: topup.iccid,
    package_id: topup.packageId,
    price: { amount: topup.priceAmount, currency: topup.currency },
    provider: topup.provider,
    provider_reference: topup.providerReference,
    upstream_package_id: topup.upstreamPackageId,
    attempts: topup.attempts,
    last_error: topup.lastError,
    since: since.toISOString(),
    upstream_placed_at: topup.upstreamPlacedAt?.toISOString() ?? null,
    next_attempt_at: topup.nextAttemptAt?.toISOString() ?? null,
    request_id: topup.acceptedRequestId,
  };
}
