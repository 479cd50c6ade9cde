import { ApiProperty } from '@nestjs/swagger';
import { MODES, type Mode } from '../../common/mode.js';
import { mapPage, type Page } from '../../common/page.js';
import { KEY_SCOPES, type KeyScope } from '../../common/scopes.js';
import { MoneyResponse } from '../../infra/http/index.js';
import type { IdempotentResponse } from '../../infra/idempotency/index.js';
import { type ApiKeyEntity, KEY_STATUSES, type KeyStatus } from '../api-key.entity.js';
import { MAX_USES } from '../api-keys.repository.js';
import type { IssuedKey, UsedKey } from '../api-keys.service.js';
import { keyPrefix } from '../key-material.js';

export class SpendLimitResponse {
  @ApiProperty({ type: MoneyResponse })
  amount!: MoneyResponse;

  @ApiProperty({ enum: ['day'], description: 'A day in UTC.' })
  per!: 'day';
}

export class ApiKeyResponse {
  @ApiProperty({ type: String, example: 'key_01KAEXAMPLE000000000000000' })
  id!: string;

  @ApiProperty({ type: String, example: 'ptn_01KAEXAMPLE000000000000000' })
  partner_id!: string;

  @ApiProperty({ enum: MODES })
  mode!: Mode;

  @ApiProperty({ type: String, nullable: true, example: 'Production backend' })
  name!: string | null;

  @ApiProperty({ type: String, example: keyPrefix('sandbox') })
  prefix!: string;

  @ApiProperty({ type: String, minLength: 4, maxLength: 4, example: 'x7Qa' })
  last4!: string;

  @ApiProperty({ enum: KEY_STATUSES, description: 'A replaced key is `active` during its grace period.' })
  status!: KeyStatus;

  @ApiProperty({ type: [String], nullable: true, example: ['203.0.113.0/24'] })
  allowed_cidrs!: readonly string[] | null;

  @ApiProperty({
    enum: KEY_SCOPES,
    isArray: true,
    nullable: true,
    example: null,
    description: 'Null has every scope, including future ones.',
  })
  scopes!: readonly KeyScope[] | null;

  @ApiProperty({ type: SpendLimitResponse, nullable: true, description: 'Null: no limit.' })
  spend_limit!: SpendLimitResponse | null;

  @ApiProperty({ type: String, format: 'date-time', nullable: true })
  expires_at!: string | null;

  @ApiProperty({ type: String, format: 'date-time', nullable: true })
  revoked_at!: string | null;

  @ApiProperty({ type: String, nullable: true, description: 'The key that replaced this one in a rotation.' })
  replaced_by!: string | null;

  @ApiProperty({
    type: String,
    format: 'date-time',
    nullable: true,
    description: 'Time of the last call, accurate to about a minute.',
  })
  last_used_at!: string | null;

  @ApiProperty({
    type: 'integer',
    maximum: MAX_USES,
    description: `Calls in the last 24 hours; ${MAX_USES} means that many or more.`,
  })
  uses_24h!: number;

  @ApiProperty({
    type: String,
    nullable: true,
    example: 'user-17',
    description: 'The portal user who created the key, or the name of the admin token.',
  })
  created_by!: string | null;

  @ApiProperty({ type: String, format: 'date-time' })
  created_at!: string;
}

export class IssuedApiKeyResponse extends ApiKeyResponse {
  @ApiProperty({
    type: String,
    nullable: true,
    example: `${keyPrefix('sandbox')}<32 characters>`,
    description: 'Shown only in this response; null when the response is replayed.',
  })
  key!: string | null;
}

export function toApiKeyResponse({ entity: key, uses24h }: UsedKey): ApiKeyResponse {
  return {
    id: key.id,
    partner_id: key.partnerId,
    mode: key.mode,
    name: key.name,
    prefix: keyPrefix(key.mode),
    last4: key.last4,
    status: key.status,
    allowed_cidrs: key.allowedCidrs,
    scopes: key.scopes,
    spend_limit: toSpendLimit(key),
    expires_at: key.expiresAt?.toISOString() ?? null,
    revoked_at: key.revokedAt?.toISOString() ?? null,
    replaced_by: key.replacedBy,
    last_used_at: key.lastUsedAt?.toISOString() ?? null,
    uses_24h: uses24h,
    created_by: key.createdBy,
    created_at: key.createdAt.toISOString(),
  };
}

function toSpendLimit({
  spendLimitAmount: amount,
  spendLimitCurrency: currency,
}: ApiKeyEntity): SpendLimitResponse | null {
  return amount === null || currency === null ? null : { amount: { amount, currency }, per: 'day' };
}

export function toIssuedApiKeyResponse({ entity, key }: IssuedKey): IssuedApiKeyResponse {
  return { ...toApiKeyResponse({ entity, uses24h: 0 }), key };
}

export function toApiKeyPage(page: Page<UsedKey>): Page<ApiKeyResponse> {
  return mapPage(page, toApiKeyResponse);
}

/** The stored response, and therefore every replay of it, has `key: null` (D20). */
export function toShownOnce(issued: IssuedKey): IdempotentResponse {
  return { data: toIssuedApiKeyResponse(issued), secretFields: ['key'] };
}
