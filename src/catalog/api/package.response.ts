import { ApiProperty } from '@nestjs/swagger';
import { MoneyResponse } from '../../infra/http/index.js';
import {
  ACTIVATION_POLICIES,
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

  @ApiProperty({ type: 'integer', nullable: true, example: 1_000_000_000, description: '1 GB = 10^9 bytes.' })
  data_bytes!: number | null;

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

  @ApiProperty({ type: MoneyResponse, nullable: true })
  retail_price!: MoneyResponse | null;

  @ApiProperty({ type: Boolean, example: true, description: 'False for a withdrawn package.' })
  available!: boolean;

  @ApiProperty({ type: String, format: 'date-time' })
  updated_at!: string;
}

export function toPackageResponse(item: PackageEntity): EsimPackageResponse {
  return {
    id: item.id,
    title: item.title,
    type: item.type,
    region: item.region,
    coverage: item.coverage,
    kind: item.kind,
    data_bytes: item.dataBytes,
    unlimited: item.unlimited,
    voice_minutes: item.voiceMinutes,
    sms_count: item.smsCount,
    validity_days: item.validityDays,
    activation_policy: item.activationPolicy,
    topup_supported: item.topupSupported,
    networks: item.networks,
    speed_policy: item.speedPolicy,
    notes: item.notes,
    price: { amount: item.priceAmount, currency: item.currency },
    retail_price: item.retailAmount === null ? null : { amount: item.retailAmount, currency: item.currency },
    available: item.available,
    updated_at: item.updatedAt.toISOString(),
  };
}
