import { ApiProperty, getSchemaPath } from '@nestjs/swagger';
import { multiplyMoney } from '../../common/money.js';
import { MoneyResponse } from '../../infra/http/index.js';
import { forDays } from '../days.js';
import {
  AFTER_FAIR_USE,
  DATA_UNITS,
  dataLabel,
  type DataUnit,
  FAIR_USE_PERIODS,
  FAIR_USE_RESETS,
  type FairUse,
  type Generation,
  GENERATIONS,
  PLAN_KINDS,
  type PlanKind,
  TOPUP_BEHAVIORS,
  TOPUP_KINDS,
  type TopupBehavior,
  type TopupKind,
} from '../package-terms.js';
import {
  ACTIVATION_POLICIES,
  NAME_LENGTH,
  NOTES_LENGTH,
  PACKAGE_KINDS,
  PACKAGE_TYPES,
  REGIONS,
  SPEED_POLICY_LENGTH,
  type ActivationPolicy,
  type PackageKind,
  type PackageType,
  type Region,
} from '../package.js';
import type { PackageEntity } from '../package.entity.js';

export class PackageNetworkResponse {
  @ApiProperty({ type: String, example: 'FR' })
  country!: string;

  @ApiProperty({ type: String, example: 'Orange' })
  operator!: string;

  @ApiProperty({ type: [String], example: ['4G', '5G'] })
  generations!: readonly string[];
}

export class PlanDaysResponse {
  @ApiProperty({ type: 'integer', example: 1 })
  min!: number;

  @ApiProperty({ type: 'integer', example: 365 })
  max!: number;
}

export class PackagePlanResponse {
  @ApiProperty({
    enum: PLAN_KINDS,
    description: '`total`: one allowance for the whole validity. `daily`: an allowance per day.',
  })
  kind!: PlanKind;

  @ApiProperty({
    type: PlanDaysResponse,
    nullable: true,
    description: 'Set where the buyer chooses the number of days: `days` of an order or top-up.',
  })
  days!: PlanDaysResponse | null;
}

export class FairUseResponse {
  @ApiProperty({ type: 'integer', nullable: true, example: 2_000_000_000 })
  full_speed_bytes!: number | null;

  @ApiProperty({ enum: FAIR_USE_PERIODS })
  per!: FairUse['per'];

  @ApiProperty({ enum: AFTER_FAIR_USE, description: 'What happens after `full_speed_bytes`.' })
  then!: FairUse['then'];

  @ApiProperty({ type: 'integer', nullable: true, example: 1_000, description: 'The reduced speed.' })
  kbps!: number | null;

  @ApiProperty({ enum: FAIR_USE_RESETS, description: 'When a day begins.' })
  resets!: FairUse['resets'];
}

export class PackageTopupResponse {
  @ApiProperty({ enum: TOPUP_KINDS, isArray: true, example: ['data'] })
  kinds!: readonly TopupKind[];

  @ApiProperty({
    enum: TOPUP_BEHAVIORS,
    description: '`adds` to the running plan, or `queues` until it ends.',
  })
  behavior!: TopupBehavior;

  @ApiProperty({ type: 'integer', nullable: true, example: 10, description: 'Maximum top-ups per eSIM.' })
  max_count!: number | null;
}

export class ShelfResponse {
  @ApiProperty({
    type: 'integer',
    minimum: 1,
    example: 1,
    description: 'Place on the shelf; 1 is the first.',
  })
  rank!: number;
}

export class EsimPackageResponse {
  @ApiProperty({ type: String, example: 'pkg_fr_1gb_7d' })
  id!: string;

  @ApiProperty({ type: String, example: 'France 1 GB, 7 days' })
  title!: string;

  @ApiProperty({ enum: PACKAGE_TYPES })
  type!: PackageType;

  @ApiProperty({ enum: REGIONS, nullable: true, type: String, example: null })
  region!: Region | null;

  @ApiProperty({ type: [String], example: ['FR'], description: 'ISO 3166-1 alpha-2.' })
  coverage!: readonly string[];

  @ApiProperty({ enum: PACKAGE_KINDS })
  kind!: PackageKind;

  @ApiProperty({ type: 'integer', nullable: true, example: 1_000_000_000 })
  data_bytes!: number | null;

  @ApiProperty({
    type: String,
    nullable: true,
    example: '1 GB',
    description: 'The allowance for display, such as `500 MB`, `1 GB/day` or `Unlimited`.',
  })
  data_label!: string | null;

  @ApiProperty({
    enum: DATA_UNITS,
    description: 'How `data_bytes` was counted: `decimal` (1 GB = 10^9) or `binary` (1 GB = 2^30).',
  })
  data_unit!: DataUnit;

  @ApiProperty({ type: PackagePlanResponse })
  plan!: PackagePlanResponse;

  @ApiProperty({ type: FairUseResponse, nullable: true })
  fair_use!: FairUseResponse | null;

  @ApiProperty({
    type: [String],
    nullable: true,
    example: null,
    description: 'Countries where the traffic reaches the internet; null if unknown.',
  })
  exit_countries!: readonly string[] | null;

  @ApiProperty({ enum: GENERATIONS, nullable: true, type: String, example: '5G' })
  max_generation!: Generation | null;

  @ApiProperty({ type: Boolean, nullable: true, example: null })
  hotspot!: boolean | null;

  @ApiProperty({
    type: 'integer',
    nullable: true,
    example: 180,
    description: 'Days after issue within which the eSIM must be installed; null if unknown.',
  })
  install_within_days!: number | null;

  @ApiProperty({ type: [String], example: [], description: 'Requirements for the traveler. Empty today.' })
  requirements!: readonly string[];

  @ApiProperty({ type: PackageTopupResponse })
  topup!: PackageTopupResponse;

  @ApiProperty({
    type: String,
    nullable: true,
    maxLength: NAME_LENGTH,
    example: null,
    description: "The wholesaler's name of a regional plan.",
  })
  region_name!: string | null;

  @ApiProperty({
    type: String,
    nullable: true,
    maxLength: NAME_LENGTH,
    example: null,
    description: "The wholesaler's name of a network or speed variant.",
  })
  variant!: string | null;

  @ApiProperty({ type: Boolean })
  unlimited!: boolean;

  @ApiProperty({ type: 'integer', nullable: true })
  voice_minutes!: number | null;

  @ApiProperty({ type: 'integer', nullable: true })
  sms_count!: number | null;

  @ApiProperty({ type: 'integer', example: 7 })
  validity_days!: number;

  @ApiProperty({ enum: ACTIVATION_POLICIES })
  activation_policy!: ActivationPolicy;

  @ApiProperty({ type: Boolean, example: true })
  topup_supported!: boolean;

  @ApiProperty({ type: [PackageNetworkResponse] })
  networks!: readonly PackageNetworkResponse[];

  @ApiProperty({
    type: String,
    nullable: true,
    maxLength: SPEED_POLICY_LENGTH,
    example: null,
    description: 'The fair-use limit, as text for customers; null if unknown.',
  })
  speed_policy!: string | null;

  @ApiProperty({
    type: String,
    nullable: true,
    maxLength: NOTES_LENGTH,
    example: null,
    description: 'Additional information about the package, as one line of plain text.',
  })
  notes!: string | null;

  @ApiProperty({ type: MoneyResponse })
  price!: MoneyResponse;

  @ApiProperty({
    type: MoneyResponse,
    nullable: true,
    description: 'Set with `plan.days`. `price` is for `plan.days.min` days.',
  })
  price_per_day!: MoneyResponse | null;

  @ApiProperty({ type: MoneyResponse, nullable: true })
  retail_price!: MoneyResponse | null;

  @ApiProperty({
    type: MoneyResponse,
    nullable: true,
    description: 'The least that customers must pay for this package; null if unknown.',
  })
  min_retail_price!: MoneyResponse | null;

  @ApiProperty({ type: Boolean, example: true, description: 'False for a withdrawn package.' })
  available!: boolean;

  @ApiProperty({ type: String, format: 'date-time' })
  updated_at!: string;
}

/** A package in the list of the catalog. */
export class ListedPackageResponse extends EsimPackageResponse {
  @ApiProperty({ type: ShelfResponse, required: false, description: 'Only with `shelf=true`.' })
  shelf?: ShelfResponse;
}

/** A package that is not on the shelf. */
export class DroppedPackageResponse {
  @ApiProperty({ type: String, example: 'pkg_jp_3gb_30d' })
  package_id!: string;

  @ApiProperty({
    type: String,
    example: 'pkg_jp_5gib_30d',
    description: 'A package on the shelf that is better.',
  })
  dominated_by!: string;
}

/** Schema of the member beside `data` that a shelf has. */
export const DROPPED = {
  dropped: {
    type: 'array',
    items: { $ref: getSchemaPath(DroppedPackageResponse) },
    description: 'Only with `shelf=true`: the other packages on sale of this list, each with a better one.',
  },
} as const;

export function toPackageResponse(item: PackageEntity): EsimPackageResponse {
  return toPackageOfDays(item, null);
}

/** @param days price, data and validity of a package sold by the day are shown for this number; null for one day */
export function toPackageOfDays(item: PackageEntity, days: number | null): EsimPackageResponse {
  const { fairUse, topup, maxDays, ...terms } = item.terms;
  const { currency } = item;
  const perDay = { amount: item.priceAmount, currency };
  const shown = forDays({ ...item, price: perDay }, days);
  return {
    id: item.id,
    title: item.title,
    type: item.type,
    region: item.region,
    coverage: item.coverage,
    kind: item.kind,
    data_bytes: shown.dataBytes,
    data_label: dataLabel(item, terms),
    data_unit: terms.dataUnit,
    plan: { kind: terms.plan, days: maxDays ? { min: 1, max: maxDays } : null },
    fair_use: fairUse && {
      full_speed_bytes: fairUse.fullSpeedBytes,
      per: fairUse.per,
      then: fairUse.then,
      kbps: fairUse.kbps,
      resets: fairUse.resets,
    },
    exit_countries: terms.exitCountries,
    max_generation: terms.maxGeneration,
    hotspot: terms.hotspot,
    install_within_days: terms.installWithinDays,
    requirements: [],
    topup: { kinds: topup.kinds, behavior: topup.behavior, max_count: topup.maxCount },
    region_name: terms.regionName,
    variant: terms.variant,
    unlimited: item.unlimited,
    voice_minutes: item.voiceMinutes,
    sms_count: item.smsCount,
    validity_days: shown.validityDays,
    activation_policy: item.activationPolicy,
    topup_supported: item.topupSupported,
    networks: item.networks,
    speed_policy: item.speedPolicy,
    notes: item.notes,
    price: shown.price,
    price_per_day: maxDays ? perDay : null,
    retail_price:
      item.retailAmount === null ? null : multiplyMoney({ amount: item.retailAmount, currency }, days ?? 1),
    min_retail_price: terms.minRetailPrice,
    available: item.available,
    updated_at: item.updatedAt.toISOString(),
  };
}
