import { ApiProperty, ApiPropertyOptional } from '@nestjs/swagger';
import { IsIn, IsInt, IsString, Matches, Max, MaxLength, Min } from 'class-validator';
import type { ListOptions } from '../database/index.js';
import { ValidationFailed } from '../../common/errors/index.js';
import { MODES } from '../../common/mode.js';
import type { PartnerBrand } from '../../common/partner-brand.js';
import { compose, Optional, QueryInteger } from './fields.js';

export const DEFAULT_LIMIT = 25;
export const MAX_LIMIT = 100;

/** `limit` and `cursor` of every list (D11). */
export class ListQueryDto {
  @ApiPropertyOptional({ type: 'integer', minimum: 1, maximum: MAX_LIMIT, default: DEFAULT_LIMIT })
  @Optional()
  @QueryInteger({ min: 1, max: MAX_LIMIT })
  limit?: number;

  @ApiPropertyOptional({
    type: String,
    minLength: 1,
    maxLength: 1_024,
    pattern: '^[A-Za-z0-9_-]+$',
    description: 'The `next_cursor` of the previous page.',
  })
  @Optional()
  @IsString({ message: 'must be text' })
  @MaxLength(1_024, { message: 'must have at most 1024 characters' })
  cursor?: string;
}

/** The start of a feed: `cursor` works as on every list; `after` is the feed's own name for it. */
export function startOfFeed({ cursor, after }: ListQueryDto & { after?: string }): string | undefined {
  if (cursor !== undefined && after !== undefined) {
    throw new ValidationFailed([
      { pointer: '?after', code: 'exclusive', message: 'must not be combined with cursor' },
    ]);
  }
  return after ?? cursor;
}

/** The mode of a portal list, which no key determines; the session decides whether it is allowed and which is the default (D50). */
export function PortalMode(): PropertyDecorator {
  return compose(
    ApiPropertyOptional({
      enum: MODES,
      description: 'A mode that the session includes. Default: `live`, or the only mode of the session.',
    }),
    Optional(),
    IsIn(MODES, { message: `must be one of ${MODES.join(', ')}` }),
  );
}

/** The list options of a validated query. */
export function toListOptions(query: ListQueryDto): ListOptions {
  return { limit: query.limit ?? DEFAULT_LIMIT, cursor: query.cursor ?? undefined };
}

/** Money of a request (D10): `{ "amount": 1250, "currency": "USD" }`. */
export class MoneyDto {
  @ApiProperty({
    type: 'integer',
    minimum: 0,
    maximum: 1_000_000_000_000,
    example: 1250,
    description: 'Minor units.',
  })
  @IsInt({ message: 'must be a whole number of minor units' })
  @Min(0, { message: 'must not be negative' })
  @Max(1_000_000_000_000, { message: 'must be at most 1000000000000' })
  amount!: number;

  @ApiProperty({ type: String, pattern: '^[A-Z]{3}$', example: 'USD', description: 'ISO 4217.' })
  @Matches(/^[A-Z]{3}$/, { message: 'must be three upper-case letters' })
  currency!: string;
}

/** Money of a response. */
export class MoneyResponse {
  @ApiProperty({ type: 'integer', example: 450, description: 'Minor units.' })
  amount!: number;

  @ApiProperty({ type: String, example: 'USD', description: 'ISO 4217.' })
  currency!: string;
}

/** The reason why an accepted order or top-up failed (D22). */
export class FailureResponse {
  @ApiProperty({ type: String, example: 'package_unavailable' })
  code!: string;

  @ApiProperty({ type: String, example: 'The package is out of stock.' })
  reason!: string;
}

/** The failure of a row, or null when it has none. */
export function toFailureResponse(code: string | null, reason: string | null): FailureResponse | null {
  return code === null ? null : { code, reason: reason ?? '' };
}

/** A partner's brand on the pages that its travelers see. */
export class BrandResponse implements PartnerBrand {
  @ApiProperty({
    type: String,
    nullable: true,
    example: 'Acme Travel',
    description: "Null shows the partner's name.",
  })
  name!: string | null;

  @ApiProperty({ type: String, nullable: true, example: 'https://acme.example/logo.svg' })
  logo_url!: string | null;

  @ApiProperty({ type: String, nullable: true, example: '#0a66c2' })
  accent!: string | null;

  @ApiProperty({ type: String, nullable: true, example: 'https://acme.example/help' })
  help_url!: string | null;
}
