import { ApiProperty } from '@nestjs/swagger';
import { MODES, type Mode } from '../../common/mode.js';
import { multiplyMoney } from '../../common/money.js';
import { ESIM_STATUSES, type EsimStatus } from '../../esims/index.js';
import { FailureResponse, MoneyResponse, toFailureResponse } from '../../infra/http/index.js';
import { ORDER_STATUSES, type OrderStatus, type OrderWithEsims } from '../order.js';

export class OrderEsimResponse {
  @ApiProperty({ type: String, example: 'esim_01KAEXAMPLE0000000000000000' })
  esim_id!: string;

  @ApiProperty({ type: String, example: '8910300000001234567' })
  iccid!: string;

  @ApiProperty({ enum: ESIM_STATUSES })
  status!: EsimStatus;
}

export class OrderResponse {
  @ApiProperty({ type: String, example: 'ord_01KAEXAMPLE0000000000000000' })
  id!: string;

  @ApiProperty({ enum: MODES })
  mode!: Mode;

  @ApiProperty({ enum: ORDER_STATUSES })
  status!: OrderStatus;

  @ApiProperty({
    type: 'integer',
    minimum: 1,
    example: 1,
    description:
      'Increases by one with each change of the order. Changes of its eSIMs count in their own versions.',
  })
  version!: number;

  @ApiProperty({ type: String, example: 'pkg_fr_1gb_7d' })
  package_id!: string;

  @ApiProperty({ type: 'integer', example: 1 })
  quantity!: number;

  @ApiProperty({
    type: 'integer',
    nullable: true,
    example: null,
    description: 'Number of days of each eSIM; null for a package of fixed days.',
  })
  days!: number | null;

  @ApiProperty({ type: 'integer', example: 0 })
  quantity_issued!: number;

  @ApiProperty({ type: 'integer', example: 0 })
  quantity_failed!: number;

  @ApiProperty({ type: MoneyResponse })
  unit_price!: MoneyResponse;

  @ApiProperty({ type: MoneyResponse })
  total!: MoneyResponse;

  @ApiProperty({
    type: MoneyResponse,
    description: 'The amount released or refunded to the wallet.',
    example: { amount: 0, currency: 'USD' },
  })
  refunded!: MoneyResponse;

  @ApiProperty({ type: String, nullable: true, example: 'booking-4711' })
  reference!: string | null;

  @ApiProperty({ type: 'object', additionalProperties: { type: 'string' }, example: { traveler: 'A-17' } })
  metadata!: Record<string, string>;

  @ApiProperty({
    type: String,
    nullable: true,
    example: null,
    description: 'The eSIM that the order replaces, and whose refund pays for it; null for any other order.',
  })
  replaces!: string | null;

  @ApiProperty({ type: [OrderEsimResponse], example: [] })
  esims!: readonly OrderEsimResponse[];

  @ApiProperty({ type: FailureResponse, nullable: true })
  failure!: FailureResponse | null;

  @ApiProperty({ type: FailureResponse, nullable: true })
  cancel_failure!: FailureResponse | null;

  @ApiProperty({ type: String, format: 'date-time' })
  created_at!: string;

  @ApiProperty({ type: String, format: 'date-time' })
  updated_at!: string;

  @ApiProperty({ type: String, format: 'date-time', nullable: true })
  issued_at!: string | null;

  @ApiProperty({ type: String, format: 'date-time', nullable: true })
  failed_at!: string | null;
}

export function toOrderResponse({ order, esims }: OrderWithEsims): OrderResponse {
  const unitPrice = { amount: order.unitPriceAmount, currency: order.currency };
  return {
    id: order.id,
    mode: order.mode,
    status: order.status,
    version: order.version,
    package_id: order.packageId,
    quantity: order.quantity,
    days: order.days,
    quantity_issued: order.quantityIssued,
    quantity_failed: order.quantityFailed,
    unit_price: unitPrice,
    total: multiplyMoney(unitPrice, order.quantity),
    refunded: { amount: order.refundedAmount, currency: order.currency },
    reference: order.reference,
    metadata: order.metadata,
    replaces: order.replaces,
    esims: esims.map((esim) => ({ esim_id: esim.id, iccid: esim.iccid, status: esim.status })),
    failure: toFailureResponse(order.failureCode, order.failureReason),
    cancel_failure: toFailureResponse(order.cancelFailureCode, order.cancelFailureReason),
    created_at: order.createdAt.toISOString(),
    updated_at: order.updatedAt.toISOString(),
    issued_at: order.issuedAt?.toISOString() ?? null,
    failed_at: order.failedAt?.toISOString() ?? null,
  };
}
