import { ApiProperty } from '@nestjs/swagger';
import { MODES, type Mode } from '../../common/mode.js';
import { FailureResponse, MoneyResponse, toFailureResponse } from '../../infra/http/index.js';
import { TOPUP_STATUSES, type TopupEntity, type TopupStatus } from '../topup.js';

export class TopupResponse {
  @ApiProperty({ type: String, example: 'top_01KAEXAMPLE0000000000000000' })
  id!: string;

  @ApiProperty({ enum: MODES })
  mode!: Mode;

  @ApiProperty({ type: String, example: 'esim_01KAEXAMPLE0000000000000000' })
  esim_id!: string;

  @ApiProperty({ type: String, pattern: '^[0-9]{18,20}$', example: '8910300000001234567' })
  iccid!: string;

  @ApiProperty({ type: String, example: 'pkg_fr_topup_1gb_7d' })
  package_id!: string;

  @ApiProperty({
    type: 'integer',
    nullable: true,
    example: null,
    description: 'Number of days bought; null for a package of fixed days.',
  })
  days!: number | null;

  @ApiProperty({ enum: TOPUP_STATUSES })
  status!: TopupStatus;

  @ApiProperty({
    type: 'integer',
    minimum: 1,
    example: 1,
    description: 'Increases by one with each change.',
  })
  version!: number;

  @ApiProperty({ type: MoneyResponse })
  price!: MoneyResponse;

  @ApiProperty({
    type: 'integer',
    nullable: true,
    example: 1_000_000_000,
    description: 'Null if the package adds only days.',
  })
  data_added_bytes!: number | null;

  @ApiProperty({ type: 'integer', example: 7 })
  validity_added_days!: number;

  @ApiProperty({ type: String, nullable: true, example: 'extension-4711' })
  reference!: string | null;

  @ApiProperty({ type: 'object', additionalProperties: { type: 'string' }, example: { traveler: 'A-17' } })
  metadata!: Record<string, string>;

  @ApiProperty({
    type: Boolean,
    example: false,
    description: "Whether the eSIM's automatic top-up placed it.",
  })
  auto!: boolean;

  @ApiProperty({ type: FailureResponse, nullable: true })
  failure!: FailureResponse | null;

  @ApiProperty({ type: String, format: 'date-time' })
  created_at!: string;

  @ApiProperty({ type: String, format: 'date-time', nullable: true })
  completed_at!: string | null;

  @ApiProperty({ type: String, format: 'date-time', nullable: true })
  failed_at!: string | null;
}

export function toTopupResponse(topup: TopupEntity): TopupResponse {
  return {
    id: topup.id,
    mode: topup.mode,
    esim_id: topup.esimId,
    iccid: topup.iccid,
    package_id: topup.packageId,
    days: topup.days,
    status: topup.status,
    version: topup.version,
    price: { amount: topup.priceAmount, currency: topup.currency },
    data_added_bytes: topup.dataAddedBytes,
    validity_added_days: topup.validityAddedDays,
    reference: topup.reference,
    metadata: topup.metadata,
    auto: topup.autoTopupId !== null,
    failure: toFailureResponse(topup.failureCode, topup.failureReason),
    created_at: topup.createdAt.toISOString(),
    completed_at: topup.completedAt?.toISOString() ?? null,
    failed_at: topup.failedAt?.toISOString() ?? null,
  };
}
