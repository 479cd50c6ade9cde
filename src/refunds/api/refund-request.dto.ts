import { ApiProperty, ApiPropertyOptional } from '@nestjs/swagger';
import { IsIn } from 'class-validator';
import { MODES, type Mode } from '../../common/mode.js';
import { LINES_PATTERN } from '../../common/plain-text.js';
import { ListQueryDto, MoneyResponse, MultiLineText, Optional, ShortText } from '../../infra/http/index.js';
import {
  REFUND_REASONS,
  REFUND_STATUSES,
  type RefundReason,
  type RefundRequestEntity,
  type RefundStatus,
} from '../refund-request.entity.js';
import type { RefundFilters } from '../refund-requests.repository.js';
import type { RequestRefundCommand } from '../request-refund.js';

const MAX_DETAILS = 1_000;

export class RequestRefundDto {
  @ApiProperty({ type: String, minLength: 1, maxLength: 64, example: 'esim_01KAEXAMPLE0000000000000000' })
  @ShortText(64)
  esim_id!: string;

  @ApiProperty({ enum: REFUND_REASONS })
  @IsIn(REFUND_REASONS, { message: `must be one of ${REFUND_REASONS.join(', ')}` })
  reason!: RefundReason;

  @ApiPropertyOptional({
    type: String,
    nullable: true,
    minLength: 1,
    maxLength: MAX_DETAILS,
    pattern: LINES_PATTERN,
    example: 'No network in Lyon since Monday.',
    description: 'Anything that helps to decide the request.',
  })
  @Optional()
  @MultiLineText(MAX_DETAILS)
  details?: string | null;
}

export function toRequestRefund(body: RequestRefundDto): RequestRefundCommand {
  return { esimId: body.esim_id, reason: body.reason, details: body.details ?? null };
}

export class RefundRequestsQueryDto extends ListQueryDto {
  @ApiPropertyOptional({ enum: REFUND_STATUSES })
  @Optional()
  @IsIn(REFUND_STATUSES, { message: 'must be a known status' })
  status?: RefundStatus;

  @ApiPropertyOptional({ type: String, minLength: 1, maxLength: 64 })
  @Optional()
  @ShortText(64)
  esim_id?: string;
}

export function toRefundFilters({ status, esim_id: esimId }: RefundRequestsQueryDto): RefundFilters {
  return { status, esimId };
}

export class RefundRequestResponse {
  @ApiProperty({ type: String, example: 'rfr_01KAEXAMPLE0000000000000000' })
  id!: string;

  @ApiProperty({ enum: MODES })
  mode!: Mode;

  @ApiProperty({ type: String, example: 'esim_01KAEXAMPLE0000000000000000' })
  esim_id!: string;

  @ApiProperty({ type: String, example: 'ord_01KAEXAMPLE0000000000000000' })
  order_id!: string;

  @ApiProperty({ enum: REFUND_REASONS })
  reason!: RefundReason;

  @ApiProperty({ type: String, nullable: true, example: 'No network in Lyon since Monday.' })
  details!: string | null;

  @ApiProperty({ enum: REFUND_STATUSES })
  status!: RefundStatus;

  @ApiProperty({ type: MoneyResponse, nullable: true, description: 'The refund; null unless approved.' })
  amount!: MoneyResponse | null;

  @ApiProperty({ type: String, nullable: true, description: 'Our answer to the request.', example: null })
  note!: string | null;

  @ApiProperty({ type: String, format: 'date-time', nullable: true })
  decided_at!: string | null;

  @ApiProperty({ type: String, format: 'date-time' })
  created_at!: string;
}

export function toRefundRequestResponse(request: RefundRequestEntity): RefundRequestResponse {
  const { amount, currency } = request;
  return {
    id: request.id,
    mode: request.mode,
    esim_id: request.esimId,
    order_id: request.orderId,
    reason: request.reason,
    details: request.details,
    status: request.status,
    amount: amount === null ? null : { amount, currency },
    note: request.note,
    decided_at: request.decidedAt?.toISOString() ?? null,
    created_at: request.createdAt.toISOString(),
  };
}
