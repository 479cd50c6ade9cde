import { ApiProperty, ApiPropertyOptional } from '@nestjs/swagger';
import { Type } from 'class-transformer';
import { IsIn, IsObject, ValidateNested } from 'class-validator';
import type { PartnerPrincipal } from '../../auth/index.js';
import { Days } from '../../catalog/index.js';
import {
  ListQueryDto,
  Metadata,
  METADATA_SCHEMA,
  MoneyDto,
  Optional,
  Reference,
  ShortText,
} from '../../infra/http/index.js';
import type { IdempotencyKey } from '../../infra/idempotency/index.js';
import type { PlaceTopupCommand } from '../place-topup.js';
import { TOPUP_STATUSES, type TopupFilters, type TopupStatus } from '../topup.js';

export class PlaceTopupDto {
  @ApiProperty({ type: String, minLength: 1, maxLength: 64, example: 'esim_01KAEXAMPLE0000000000000000' })
  @ShortText(64)
  esim_id!: string;

  @ApiProperty({
    type: String,
    minLength: 1,
    maxLength: 64,
    example: 'pkg_fr_topup_1gb_7d',
    description: "One of the eSIM's `topup-packages`.",
  })
  @ShortText(64)
  package_id!: string;

  @Days()
  days?: number | null;

  @ApiPropertyOptional({
    type: String,
    nullable: true,
    pattern: '^[\\x20-\\x7e]{1,64}$',
    example: 'extension-4711',
    description:
      'Your own id for the top-up. Unique per mode, forever, and separate from references of orders.',
  })
  @Optional()
  @Reference()
  reference?: string | null;

  @ApiPropertyOptional({
    type: MoneyDto,
    nullable: true,
    description: 'Maximum price of all days. A higher price gets 409 `price_changed`.',
  })
  @Optional()
  @IsObject({ message: 'must be an object' })
  @ValidateNested()
  @Type(() => MoneyDto)
  max_price?: MoneyDto | null;

  @ApiPropertyOptional({ ...METADATA_SCHEMA })
  @Optional()
  @Metadata()
  metadata?: Record<string, string> | null;
}

export function toPlaceTopup(
  body: PlaceTopupDto,
  { requestId, key: idempotencyKey }: Pick<IdempotencyKey, 'requestId' | 'key'>,
  { limitedKeyId }: Pick<PartnerPrincipal, 'limitedKeyId'>,
): PlaceTopupCommand {
  return {
    esimId: body.esim_id,
    packageId: body.package_id,
    days: body.days ?? null,
    reference: body.reference ?? null,
    maxPrice: body.max_price ?? null,
    metadata: body.metadata ?? {},
    requestId,
    idempotencyKey,
    limitedKeyId,
    autoTopupId: null,
  };
}

export class TopupsQueryDto extends ListQueryDto {
  @ApiPropertyOptional({ type: String, minLength: 1, maxLength: 64 })
  @Optional()
  @ShortText(64)
  esim_id?: string;

  @ApiPropertyOptional({ enum: TOPUP_STATUSES })
  @Optional()
  @IsIn(TOPUP_STATUSES, { message: 'must be a known status' })
  status?: TopupStatus;

  @ApiPropertyOptional({ type: String, pattern: '^[\\x20-\\x7e]{1,64}$', example: 'extension-4711' })
  @Optional()
  @Reference()
  reference?: string;
}

export function toTopupFilters(query: TopupsQueryDto): TopupFilters {
  return { esimId: query.esim_id, status: query.status, reference: query.reference };
}
