import { ApiProperty, ApiPropertyOptional } from '@nestjs/swagger';
import { Type } from 'class-transformer';
import {
  ArrayMaxSize,
  ArrayMinSize,
  ArrayUnique,
  IsArray,
  IsIn,
  IsInt,
  IsObject,
  Max,
  Min,
  ValidateBy,
  ValidateNested,
} from 'class-validator';
import { MODES, type Mode } from '../../common/mode.js';
import { LINE_PATTERN } from '../../common/plain-text.js';
import { KEY_SCOPES, type KeyScope } from '../../common/scopes.js';
import {
  compose,
  ListQueryDto,
  MoneyDto,
  Optional,
  Rfc3339,
  SingleLineText,
} from '../../infra/http/index.js';
import { parseNetwork } from '../../infra/network/ip-address.js';
import type { KeyTerms } from '../api-keys.repository.js';

const MAX_NAME = 100;
const MAX_CIDRS = 50;
const MAX_GRACE_SECONDS = 604_800;
export const DEFAULT_GRACE_SECONDS = 86_400;

const MODE_MESSAGE = { message: `must be one of ${MODES.join(', ')}` };

/** 1 to 50 networks or addresses. `[]` is refused, because it could mean all or none; null means all. */
function AllowedCidrs(): PropertyDecorator {
  return compose(
    IsArray({ message: 'must be a list' }),
    ArrayMinSize(1, { message: 'must not be empty; omit it to allow every address' }),
    ArrayMaxSize(MAX_CIDRS, { message: `must have at most ${MAX_CIDRS} entries` }),
    ValidateBy({
      name: 'cidrs',
      validator: {
        validate: (list) =>
          !Array.isArray(list) || list.every((item) => typeof item === 'string' && parseNetwork(item)),
        defaultMessage: () =>
          'must be IPv4 or IPv6 addresses or networks such as 203.0.113.0/24, host bits zero',
      },
    }),
  );
}

export class SpendLimitDto {
  @ApiProperty({ type: MoneyDto, description: 'Maximum sum of the prices that the key accepts per day.' })
  @IsObject({ message: 'must be an object' })
  @ValidateNested()
  @Type(() => MoneyDto)
  amount!: MoneyDto;

  @ApiProperty({ enum: ['day'], description: 'A day in UTC.' })
  @IsIn(['day'], { message: 'must be day' })
  per!: 'day';
}

export class CreateApiKeyDto {
  @ApiProperty({ enum: MODES })
  @IsIn(MODES, MODE_MESSAGE)
  mode!: Mode;

  @ApiPropertyOptional({
    type: String,
    nullable: true,
    minLength: 1,
    maxLength: MAX_NAME,
    pattern: LINE_PATTERN,
    example: 'Production backend',
  })
  @Optional()
  @SingleLineText(MAX_NAME)
  name?: string | null;

  @ApiPropertyOptional({
    type: String,
    format: 'date-time',
    nullable: true,
    description: 'Must be in the future.',
  })
  @Optional()
  @Rfc3339()
  expires_at?: string | null;

  @ApiPropertyOptional({
    type: [String],
    nullable: true,
    minItems: 1,
    maxItems: MAX_CIDRS,
    example: ['203.0.113.0/24', '2001:db8::/32'],
    description: 'Networks or addresses that may use the key. Null or absent allows all.',
  })
  @Optional()
  @AllowedCidrs()
  allowed_cidrs?: string[] | null;

  @ApiPropertyOptional({
    enum: KEY_SCOPES,
    isArray: true,
    nullable: true,
    minItems: 1,
    uniqueItems: true,
    example: ['catalog:read'],
    description: 'Operations that the key may call. Null or absent allows all, including future ones.',
  })
  @Optional()
  @IsArray({ message: 'must be a list of scopes' })
  @ArrayMinSize(1, { message: 'must not be empty; omit it for all' })
  @ArrayUnique({ message: 'must not repeat a scope' })
  @IsIn(KEY_SCOPES, { each: true, message: 'must hold known scopes' })
  scopes?: KeyScope[] | null;

  @ApiPropertyOptional({
    type: SpendLimitDto,
    nullable: true,
    description:
      'Counts orders and top-ups when they are accepted. An amount that is released or refunded no longer counts. Null or absent: no limit.',
  })
  @Optional()
  @IsObject({ message: 'must be an object' })
  @ValidateNested()
  @Type(() => SpendLimitDto)
  spend_limit?: SpendLimitDto | null;
}

export class RotateApiKeyDto {
  @ApiPropertyOptional({
    type: 'integer',
    nullable: true,
    minimum: 0,
    maximum: MAX_GRACE_SECONDS,
    default: DEFAULT_GRACE_SECONDS,
    description:
      'Seconds for which the old key stays valid. An older key in its grace period expires immediately.',
  })
  @Optional()
  @IsInt({ message: 'must be a whole number of seconds' })
  @Min(0, { message: 'must be at least 0' })
  @Max(MAX_GRACE_SECONDS, { message: `must be at most ${MAX_GRACE_SECONDS}` })
  grace_seconds?: number | null;
}

export class ApiKeysQueryDto extends ListQueryDto {
  @ApiPropertyOptional({ enum: MODES })
  @Optional()
  @IsIn(MODES, MODE_MESSAGE)
  mode?: Mode;
}

export function toKeyTerms(partnerId: string, body: CreateApiKeyDto): KeyTerms {
  const networks = body.allowed_cidrs?.flatMap((text) => parseNetwork(text) ?? []);
  return {
    partnerId,
    mode: body.mode,
    name: body.name ?? null,
    expiresAt: body.expires_at == null ? null : new Date(body.expires_at),
    allowedCidrs: networks ? [...new Set(networks)] : null,
    scopes: body.scopes ?? null,
    spendLimitAmount: body.spend_limit?.amount.amount ?? null,
    spendLimitCurrency: body.spend_limit?.amount.currency ?? null,
    firstKeyId: null,
  };
}
