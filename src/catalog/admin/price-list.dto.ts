import { ApiProperty, ApiPropertyOptional } from '@nestjs/swagger';
import { Type } from 'class-transformer';
import {
  ArrayMaxSize,
  ArrayUnique,
  IsArray,
  IsInt,
  IsObject,
  Matches,
  Max,
  Min,
  ValidateNested,
} from 'class-validator';
import { MoneyDto, MoneyResponse, Optional } from '../../infra/http/index.js';
import type { PriceList } from '../price-list.js';

const MAX_MARGIN_BPS = 100_000;
/** Each price has four members and is one element; a body has at most 1,000 members and 256 elements (D9). */
const MAX_PRICES = 240;

export class PackagePriceDto {
  @ApiProperty({ type: String, pattern: '^pkg_[A-Za-z0-9_-]{1,60}$', example: 'pkg_a_FR_1_7' })
  @Matches(/^pkg_[A-Za-z0-9_-]{1,60}$/, { message: 'must be the id of a package' })
  package_id!: string;

  @ApiProperty({ type: MoneyDto })
  @IsObject({ message: 'must be an object' })
  @ValidateNested()
  @Type(() => MoneyDto)
  price!: MoneyDto;
}

export class PriceListDto {
  @ApiPropertyOptional({
    type: 'integer',
    nullable: true,
    minimum: 0,
    maximum: MAX_MARGIN_BPS,
    example: 1500,
    description:
      'Margin on the cost of a package, in hundredths of a percent. Absent: the prices of the catalog apply.',
  })
  @Optional()
  @IsInt({ message: 'must be a whole number of hundredths of a percent' })
  @Min(0, { message: 'must be at least 0' })
  @Max(MAX_MARGIN_BPS, { message: `must be at most ${MAX_MARGIN_BPS}` })
  margin_bps?: number | null;

  @ApiPropertyOptional({
    type: () => [PackagePriceDto],
    nullable: true,
    maxItems: MAX_PRICES,
    description: 'Fixed prices by package.',
  })
  @Optional()
  @IsArray({ message: 'must be a list' })
  @ArrayMaxSize(MAX_PRICES, { message: `must have at most ${MAX_PRICES} prices` })
  @ArrayUnique((item: PackagePriceDto | null) => item?.package_id, { message: 'must not repeat a package' })
  @IsObject({ each: true, message: 'must be an object' })
  @ValidateNested({ each: true })
  @Type(() => PackagePriceDto)
  prices?: PackagePriceDto[] | null;
}

export class PackagePriceResponse {
  @ApiProperty({ type: String, example: 'pkg_a_FR_1_7' })
  package_id!: string;

  @ApiProperty({ type: MoneyResponse })
  price!: MoneyResponse;
}

export class PriceListResponse {
  @ApiProperty({ type: String, example: 'ptn_01KAEXAMPLE000000000000000' })
  partner_id!: string;

  @ApiProperty({ type: 'integer', nullable: true })
  margin_bps!: number | null;

  @ApiProperty({ type: () => [PackagePriceResponse] })
  prices!: readonly PackagePriceResponse[];

  @ApiProperty({ type: String, format: 'date-time' })
  updated_at!: string;
}

export function toPriceListTerms(body: PriceListDto): Pick<PriceList, 'marginBps' | 'prices'> {
  const prices = (body.prices ?? []).map(
    ({ package_id, price: { amount, currency } }) => [package_id, { amount, currency }] as const,
  );
  return { marginBps: body.margin_bps ?? null, prices: Object.fromEntries(prices) };
}

export function toPriceListResponse(partnerId: string, list: PriceList): PriceListResponse {
  return {
    partner_id: partnerId,
    margin_bps: list.marginBps,
    prices: Object.entries(list.prices).map(([package_id, price]) => ({ package_id, price })),
    updated_at: list.updatedAt.toISOString(),
  };
}
