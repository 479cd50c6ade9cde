import { ApiPropertyOptional } from '@nestjs/swagger';
import { IsIn, Matches } from 'class-validator';
import { ListQueryDto, Optional, QueryInteger, Rfc3339 } from '../../infra/http/index.js';
import type { CatalogFilters } from '../catalog-list.js';
import { MAX_DAYS } from './days.dto.js';
import { PLAN_KINDS, type PlanKind } from '../package-terms.js';
import {
  PACKAGE_KINDS,
  PACKAGE_TYPES,
  REGIONS,
  type PackageKind,
  type PackageType,
  type Region,
} from '../package.js';

const IsCountryCode = (): PropertyDecorator =>
  Matches(/^[A-Z]{2}$/, { message: 'must be two upper-case letters' });

const MAX_FILTER_NUMBER = 1_000_000_000_000_000;

export class CatalogQueryDto extends ListQueryDto {
  @ApiPropertyOptional({
    type: String,
    pattern: '^[A-Z]{2}$',
    example: 'FR',
    description: 'A country that the package covers.',
  })
  @Optional()
  @IsCountryCode()
  country?: string;

  @ApiPropertyOptional({ enum: REGIONS })
  @Optional()
  @IsIn(REGIONS, { message: 'must be a known region' })
  region?: Region;

  @ApiPropertyOptional({ enum: PACKAGE_TYPES })
  @Optional()
  @IsIn(PACKAGE_TYPES, { message: 'must be country, regional or global' })
  type?: PackageType;

  @ApiPropertyOptional({ enum: PACKAGE_KINDS })
  @Optional()
  @IsIn(PACKAGE_KINDS, { message: 'must be base or topup' })
  kind?: PackageKind;

  @ApiPropertyOptional({
    type: 'integer',
    minimum: 0,
    description: 'Minimum amount of data. Unlimited packages match.',
  })
  @Optional()
  @QueryInteger({ min: 0, max: MAX_FILTER_NUMBER })
  min_data_bytes?: number;

  @ApiPropertyOptional({ type: 'integer', minimum: 0, description: 'Maximum price, in minor units.' })
  @Optional()
  @QueryInteger({ min: 0, max: MAX_FILTER_NUMBER })
  max_price_amount?: number;

  @ApiPropertyOptional({
    type: String,
    format: 'date-time',
    description:
      'Changed at or after this time. Pass the latest `updated_at` that you received, not the time of your clock: ' +
      'a change may show up a moment after its `updated_at`.',
  })
  @Optional()
  @Rfc3339()
  updated_since?: string;

  @ApiPropertyOptional({ enum: PLAN_KINDS })
  @Optional()
  @IsIn(PLAN_KINDS, { message: 'must be total, daily or unlimited' })
  plan?: PlanKind;

  @ApiPropertyOptional({
    type: String,
    pattern: '^[A-Z]{2}$',
    example: 'JP',
    description: 'A country where the traffic reaches the internet.',
  })
  @Optional()
  @IsCountryCode()
  exit_country?: string;

  @ApiPropertyOptional({
    type: String,
    pattern: '^[A-Z]{2}$',
    example: 'HK',
    description: 'Only packages with known exit countries, none of which is this one.',
  })
  @Optional()
  @IsCountryCode()
  not_exit_country?: string;

  @ApiPropertyOptional({ type: 'integer', minimum: 1 })
  @Optional()
  @QueryInteger({ min: 1, max: 10_000 })
  max_validity_days?: number;

  @ApiPropertyOptional({ enum: ['true', 'false'] })
  @Optional()
  @IsIn(['true', 'false'], { message: 'must be true or false' })
  topup_supported?: 'true' | 'false';
}

export class PackageQueryDto {
  @ApiPropertyOptional({
    type: 'integer',
    minimum: 1,
    maximum: MAX_DAYS,
    description: 'Number of days, only for a package with `plan.days`. Defaults to `plan.days.min`.',
  })
  @Optional()
  @QueryInteger({ min: 1, max: MAX_DAYS })
  days?: number;
}

export function toCatalogFilters(query: CatalogQueryDto): CatalogFilters {
  return {
    country: query.country,
    region: query.region,
    type: query.type,
    kind: query.kind,
    minDataBytes: query.min_data_bytes,
    maxPriceAmount: query.max_price_amount,
    updatedSince: query.updated_since === undefined ? undefined : new Date(query.updated_since),
    plan: query.plan,
    exitCountry: query.exit_country,
    notExitCountry: query.not_exit_country,
    maxValidityDays: query.max_validity_days,
    topupSupported: query.topup_supported === undefined ? undefined : query.topup_supported === 'true',
  };
}
