import { ApiProperty, ApiPropertyOptional } from '@nestjs/swagger';
import { Type } from 'class-transformer';
import { IsIn, IsInt, IsObject, Max, Min, ValidateNested } from 'class-validator';
import type { PartnerPrincipal } from '../../auth/index.js';
import { Days } from '../../catalog/index.js';
import {
  ListQueryDto,
  Metadata,
  METADATA_SCHEMA,
  MoneyDto,
  Optional,
  Reference,
  Rfc3339,
  ShortText,
} from '../../infra/http/index.js';
import type { IdempotencyKey } from '../../infra/idempotency/index.js';
import { ORDER_STATUSES, type OrderFilters, type OrderStatus } from '../order.js';
import type { PlaceOrderCommand } from '../place-order.js';

const MAX_QUANTITY = 20;

export class PlaceOrderDto {
  @ApiProperty({ type: String, minLength: 1, maxLength: 64, example: 'pkg_fr_1gb_7d' })
  @ShortText(64)
  package_id!: string;

  @ApiPropertyOptional({ type: 'integer', minimum: 1, maximum: MAX_QUANTITY, default: 1, nullable: true })
  @Optional()
  @IsInt({ message: 'must be a whole number' })
  @Min(1, { message: 'must be at least 1' })
  @Max(MAX_QUANTITY, { message: `must be at most ${MAX_QUANTITY}` })
  quantity?: number | null;

  @Days()
  days?: number | null;

  @ApiPropertyOptional({
    type: String,
    nullable: true,
    pattern: '^[\\x20-\\x7e]{1,64}$',
    example: 'booking-4711',
    description: 'Your own id for the order. Unique per mode, forever.',
  })
  @Optional()
  @Reference()
  reference?: string | null;

  @ApiPropertyOptional({
    type: MoneyDto,
    nullable: true,
    description: 'Maximum price of one eSIM for all its days. A higher price gets 409 `price_changed`.',
  })
  @Optional()
  @IsObject({ message: 'must be an object' })
  @ValidateNested()
  @Type(() => MoneyDto)
  max_unit_price?: MoneyDto | null;

  @ApiPropertyOptional({ ...METADATA_SCHEMA })
  @Optional()
  @Metadata()
  metadata?: Record<string, string> | null;
}

export function toPlaceOrder(
  body: PlaceOrderDto,
  { requestId, key: idempotencyKey }: Pick<IdempotencyKey, 'requestId' | 'key'>,
  { limitedKeyId }: Pick<PartnerPrincipal, 'limitedKeyId'>,
): PlaceOrderCommand {
  return {
    packageId: body.package_id,
    quantity: body.quantity ?? 1,
    days: body.days ?? null,
    reference: body.reference ?? null,
    maxUnitPrice: body.max_unit_price ?? null,
    metadata: body.metadata ?? {},
    requestId,
    idempotencyKey,
    limitedKeyId,
  };
}

export class OrdersQueryDto extends ListQueryDto {
  @ApiPropertyOptional({ enum: ORDER_STATUSES })
  @Optional()
  @IsIn(ORDER_STATUSES, { message: 'must be a known status' })
  status?: OrderStatus;

  @ApiPropertyOptional({ type: String, pattern: '^[\\x20-\\x7e]{1,64}$', example: 'booking-4711' })
  @Optional()
  @Reference()
  reference?: string;

  @ApiPropertyOptional({ type: String, format: 'date-time', description: 'Inclusive.' })
  @Optional()
  @Rfc3339()
  created_after?: string;

  @ApiPropertyOptional({ type: String, format: 'date-time', description: 'Exclusive.' })
  @Optional()
  @Rfc3339()
  created_before?: string;
}

export function toOrderFilters(query: OrdersQueryDto): OrderFilters {
  return {
    status: query.status,
    reference: query.reference,
    createdAfter: query.created_after === undefined ? undefined : new Date(query.created_after),
    createdBefore: query.created_before === undefined ? undefined : new Date(query.created_before),
  };
}
