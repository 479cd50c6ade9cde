import { ApiPropertyOptional } from '@nestjs/swagger';
import { IsIn, IsString, Matches, MaxLength } from 'class-validator';
import { ValidationFailed } from '../../common/errors/index.js';
import { ListQueryDto, Optional, QueryInteger, Rfc3339 } from '../../infra/http/index.js';
import { CATALOG_SORTS, type CatalogFilters, type CatalogSort } from '../catalog-list.js';
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

  @ApiPropertyOptional({
    enum: CATALOG_SORTS,
    description:
      '`-` sorts in descending order; the default is newest first. Prices are sorted within each currency. Unlimited counts as the most data, and a package without data as the least.',
  })
  @Optional()
  @IsIn(CATALOG_SORTS, { message: 'must be price, -price, data or -data' })
  sort?: CatalogSort;

  @ApiPropertyOptional({
    enum: ['true', 'false'],
    description:
      '`true` lists only packages on sale that no other one of the list dominates: same coverage, kind, exit countries and speed, and at least as much data and days for at most the price. It needs `country` or `region`, lists base packages unless `kind` says otherwise, sorts by `sort` or by price, and has one page: no `limit`, `cursor` or `updated_since`.',
  })
  @Optional()
  @IsIn(['true', 'false'], { message: 'must be true or false' })
  shelf?: 'true' | 'false';
}

export class CatalogChangesQueryDto extends ListQueryDto {
  @ApiPropertyOptional({
    type: String,
    minLength: 1,
    maxLength: 1_024,
    pattern: '^[A-Za-z0-9_-]+$',
    description:
      'A `next_cursor` of this list. Without it, the list begins with the oldest change that is kept.',
  })
  @Optional()
  @IsString({ message: 'must be text' })
  @MaxLength(1_024, { message: 'must have at most 1024 characters' })
  after?: string;
}

/** Parameters that a shelf, which is one page of the packages on sale, cannot honor. */
const NOT_ON_A_SHELF = ['limit', 'cursor', 'updated_since'] as const;

/** Whether the query asks for a shelf. @throws ValidationFailed for a shelf with parameters that it cannot honor */
export function wantsShelf(query: CatalogQueryDto): boolean {
  if (query.shelf !== 'true') return false;
  const problems = NOT_ON_A_SHELF.filter((name) => query[name] !== undefined).map((name) => ({
    pointer: `?${name}`,
    code: 'exclusive',
    message: 'must not be combined with shelf',
  }));
  if (query.country === undefined && query.region === undefined)
    problems.push({ pointer: '?shelf', code: 'required', message: 'needs country or region' });
  if (problems.length > 0) throw new ValidationFailed(problems);
  return true;
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
    sort: query.sort,
  };
}
