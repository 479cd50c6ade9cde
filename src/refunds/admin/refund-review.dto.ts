import { ApiProperty, ApiPropertyOptional } from '@nestjs/swagger';
import { Type } from 'class-transformer';
import { IsIn, IsObject, Min, ValidateNested } from 'class-validator';
import { LINES_PATTERN } from '../../common/plain-text.js';
import { ESIM_STATUSES, type EsimStatus, PROFILE_STATUSES, type ProfileStatus } from '../../esims/index.js';
import { ListQueryDto, MoneyDto, MoneyResponse, MultiLineText, Optional } from '../../infra/http/index.js';
import { ORDER_STATUSES, type OrderStatus } from '../../orders/index.js';
import { RefundRequestResponse, toRefundRequestResponse } from '../api/refund-request.dto.js';
import type { RequestWithFacts } from '../refund-facts.js';
import { REFUND_STATUSES, type RefundStatus } from '../refund-request.entity.js';

const MAX_NOTE = 500;

export class RejectRefundDto {
  @ApiProperty({
    type: String,
    minLength: 1,
    maxLength: MAX_NOTE,
    pattern: LINES_PATTERN,
    description: 'The reason. The partner sees it, and so does the audit log.',
  })
  @MultiLineText(MAX_NOTE)
  note!: string;
}

/** Money of a refund. */
export class RefundMoneyDto extends MoneyDto {
  @ApiProperty({
    type: 'integer',
    minimum: 1,
    maximum: 1_000_000_000_000,
    example: 450,
    description: 'Minor units.',
  })
  @Min(1, { message: 'must be at least 1' })
  override amount!: number;
}

export class ApproveRefundDto extends RejectRefundDto {
  @ApiPropertyOptional({
    type: RefundMoneyDto,
    nullable: true,
    description: 'Default: everything that is left to refund, `captured` minus `refunded`.',
  })
  @Optional()
  @IsObject({ message: 'must be an object' })
  @ValidateNested()
  @Type(() => RefundMoneyDto)
  amount?: RefundMoneyDto | null;
}

export class RefundReviewsQueryDto extends ListQueryDto {
  @ApiPropertyOptional({ enum: REFUND_STATUSES })
  @Optional()
  @IsIn(REFUND_STATUSES, { message: 'must be a known status' })
  status?: RefundStatus;
}

/** Facts about the eSIM and its order, at the time of the call. */
export class RefundFactsResponse {
  @ApiProperty({ enum: ORDER_STATUSES })
  order_status!: OrderStatus;

  @ApiProperty({ type: String, example: 'pkg_fr_1gb_7d' })
  package_id!: string;

  @ApiProperty({ type: String, pattern: '^[0-9]{18,20}$', example: '8910300000001234567' })
  iccid!: string;

  @ApiProperty({ enum: ESIM_STATUSES })
  esim_status!: EsimStatus;

  @ApiProperty({ enum: PROFILE_STATUSES })
  profile_status!: ProfileStatus;

  @ApiProperty({ type: String, format: 'date-time', nullable: true })
  activated_at!: string | null;

  @ApiProperty({ type: 'integer', example: 0 })
  used_bytes!: number;

  @ApiProperty({ type: 'integer', nullable: true, example: 1_000_000_000 })
  total_bytes!: number | null;

  @ApiProperty({ type: String, format: 'date-time', description: 'The time of the usage measurement.' })
  as_of!: string;

  @ApiProperty({
    type: String,
    format: 'date-time',
    nullable: true,
    description: 'When the wholesaler last reported on the eSIM; null if never.',
  })
  read_at!: string | null;

  @ApiProperty({
    type: MoneyResponse,
    description: "The charge for the eSIM: its share of the order's price, without top-ups.",
  })
  captured!: MoneyResponse;

  @ApiProperty({
    type: MoneyResponse,
    description: 'The part of it that a cancellation or approved requests refunded.',
    example: { amount: 0, currency: 'USD' },
  })
  refunded!: MoneyResponse;
}

/** A partner's refund request, with the facts that help to decide it. */
export class RefundReviewResponse extends RefundRequestResponse {
  @ApiProperty({ type: String, example: 'ptn_01KAEXAMPLE000000000000000' })
  partner_id!: string;

  @ApiProperty({ type: RefundFactsResponse })
  facts!: RefundFactsResponse;
}

export function toRefundReviewResponse({
  request,
  order,
  esim,
  refundable,
}: RequestWithFacts): RefundReviewResponse {
  const { currency, unitPriceAmount } = order;
  return {
    ...toRefundRequestResponse(request),
    partner_id: request.partnerId,
    facts: {
      order_status: order.status,
      package_id: order.packageId,
      iccid: esim.iccid,
      esim_status: esim.status,
      profile_status: esim.profileStatus,
      activated_at: esim.activatedAt?.toISOString() ?? null,
      used_bytes: esim.usedBytes,
      total_bytes: esim.totalBytes,
      as_of: esim.usageAsOf.toISOString(),
      read_at: esim.readAt?.toISOString() ?? null,
      captured: { amount: unitPriceAmount, currency },
      refunded: { amount: unitPriceAmount - refundable, currency },
    },
  };
}
