import { ApiProperty } from '@nestjs/swagger';
import { Type } from 'class-transformer';
import { IsIn, IsInt, IsObject, Max, Min, ValidateNested } from 'class-validator';
import type { PartnerPrincipal } from '../../auth/index.js';
import { ERROR_CATALOG, ERROR_CODES, type ErrorCode } from '../../common/errors/index.js';
import { type AutoTopupTerms, ESIM_STATUSES, takesTopups, USAGE_THRESHOLDS } from '../../esims/index.js';
import { MoneyDto, MoneyResponse, ShortText } from '../../infra/http/index.js';
import type { ShownAutoTopup } from '../auto-topups.js';

const MAX_TIMES = 100;
const STATUSES = [
  'active',
  'exhausted',
  ...ESIM_STATUSES.filter((status) => !takesTopups({ status, pendingAction: null })),
] as const;

export class AutoTopupDto {
  @ApiProperty({
    enum: USAGE_THRESHOLDS,
    example: 80,
    description: 'The usage threshold, in percent, that places a top-up.',
  })
  @IsIn(USAGE_THRESHOLDS, { message: `must be one of ${USAGE_THRESHOLDS.join(', ')}` })
  at_percent!: (typeof USAGE_THRESHOLDS)[number];

  @ApiProperty({
    type: String,
    minLength: 1,
    maxLength: 64,
    example: 'pkg_fr_topup_1gb_7d',
    description: "One of the eSIM's `topup-packages`. A package sold by the day adds one day.",
  })
  @ShortText(64)
  package_id!: string;

  @ApiProperty({
    type: 'integer',
    minimum: 1,
    maximum: MAX_TIMES,
    example: 3,
    description: 'Maximum number of top-ups, without those that fail. Later changes keep the count.',
  })
  @IsInt({ message: 'must be a whole number' })
  @Min(1, { message: 'must be at least 1' })
  @Max(MAX_TIMES, { message: `must be at most ${MAX_TIMES}` })
  max_times!: number;

  @ApiProperty({ type: MoneyDto, description: 'Maximum price of each top-up.' })
  @IsObject({ message: 'must be an object' })
  @ValidateNested()
  @Type(() => MoneyDto)
  max_price!: MoneyDto;
}

export function toAutoTopupTerms(
  body: AutoTopupDto,
  { limitedKeyId }: Pick<PartnerPrincipal, 'limitedKeyId'>,
): AutoTopupTerms {
  return {
    atPercent: body.at_percent,
    packageId: body.package_id,
    maxTimes: body.max_times,
    maxPriceAmount: body.max_price.amount,
    maxPriceCurrency: body.max_price.currency,
    limitedKeyId,
  };
}

export class AutoTopupFailureResponse {
  @ApiProperty({ enum: ERROR_CODES, example: 'insufficient_balance' })
  code!: ErrorCode;

  @ApiProperty({ type: String, example: ERROR_CATALOG.insufficient_balance.title })
  reason!: string;

  @ApiProperty({ type: String, format: 'date-time' })
  at!: string;
}

export class AutoTopupResponse {
  @ApiProperty({ type: String, example: 'esim_01KAEXAMPLE0000000000000000' })
  esim_id!: string;

  @ApiProperty({
    enum: STATUSES,
    description:
      'Only an `active` rule places top-ups. `exhausted`: `times_used` has reached `max_times`. The others are statuses of the eSIM.',
  })
  status!: (typeof STATUSES)[number];

  @ApiProperty({ enum: USAGE_THRESHOLDS, example: 80 })
  at_percent!: (typeof USAGE_THRESHOLDS)[number];

  @ApiProperty({ type: String, example: 'pkg_fr_topup_1gb_7d' })
  package_id!: string;

  @ApiProperty({ type: 'integer', minimum: 1, maximum: MAX_TIMES, example: 3 })
  max_times!: number;

  @ApiProperty({
    type: 'integer',
    minimum: 0,
    example: 1,
    description: 'Number of top-ups placed by the rule, without those that failed.',
  })
  times_used!: number;

  @ApiProperty({ type: MoneyResponse })
  max_price!: MoneyResponse;

  @ApiProperty({
    type: String,
    nullable: true,
    example: 'top_01KAEXAMPLE0000000000000000',
    description: 'The newest top-up placed by the rule; null before the first.',
  })
  last_topup_id!: string | null;

  @ApiProperty({
    type: AutoTopupFailureResponse,
    nullable: true,
    description: 'Why the last crossing of the threshold got no top-up; null when it got one.',
  })
  last_failure!: AutoTopupFailureResponse | null;

  @ApiProperty({ type: String, format: 'date-time' })
  created_at!: string;

  @ApiProperty({ type: String, format: 'date-time', description: 'Time of the last change of the rule.' })
  updated_at!: string;
}

export class DeletedAutoTopupResponse {
  @ApiProperty({ type: String, example: 'esim_01KAEXAMPLE0000000000000000' })
  esim_id!: string;

  @ApiProperty({ type: Boolean, example: true })
  deleted!: true;
}

export function toAutoTopupResponse(shown: ShownAutoTopup): AutoTopupResponse {
  const { rule, topups } = shown;
  const { lastFailureCode: code, lastFailedAt: at } = rule;
  return {
    esim_id: rule.esimId,
    status: statusOf(shown),
    at_percent: rule.atPercent,
    package_id: rule.packageId,
    max_times: rule.maxTimes,
    times_used: topups.used,
    max_price: { amount: rule.maxPriceAmount, currency: rule.maxPriceCurrency },
    last_topup_id: topups.lastId,
    last_failure: code && at && { code, reason: ERROR_CATALOG[code].title, at: at.toISOString() },
    created_at: rule.createdAt.toISOString(),
    updated_at: rule.updatedAt.toISOString(),
  };
}

function statusOf({ rule, esim, topups }: ShownAutoTopup): AutoTopupResponse['status'] {
  if (!takesTopups({ ...esim, pendingAction: null })) return esim.status;
  return topups.used >= rule.maxTimes ? 'exhausted' : 'active';
}
