import { Controller, Get, Inject, UseGuards } from '@nestjs/common';
import { ApiProperty, ApiTags } from '@nestjs/swagger';
import { MODES, type Mode } from '../../common/mode.js';
import { KEY_SCOPES, type KeyScope } from '../../common/scopes.js';
import { APP_CONFIG, type AppConfig } from '../../config/index.js';
import { MoneyResponse } from '../../infra/http/index.js';
import { Responds } from '../../infra/http/openapi/responds.js';
import { BearerKeyGuard, Caller } from '../guards.js';
import { KeySpending } from '../key-spending.js';
import { PartnerPrincipal } from '../principal.js';
import { NeedsScope } from '../scopes.js';

export class LimitsResponse {
  @ApiProperty({ type: 'integer', example: 60 })
  requests_per_minute!: number;

  @ApiProperty({ type: 'integer', example: 120 })
  burst!: number;
}

/** The daily spend limit of the key, with what is left of it. */
export class RemainingSpendLimitResponse {
  @ApiProperty({ type: MoneyResponse })
  amount!: MoneyResponse;

  @ApiProperty({ enum: ['day'], description: 'A day in UTC.' })
  per!: 'day';

  @ApiProperty({ type: MoneyResponse, description: 'The part that is left until 00:00 UTC.' })
  remaining!: MoneyResponse;
}

export class AccountResponse {
  @ApiProperty({ type: String, example: 'ptn_01KAEXAMPLE0000000000000000' })
  partner_id!: string;

  @ApiProperty({ type: String, example: 'Demo Travel' })
  partner_name!: string;

  @ApiProperty({ enum: MODES })
  mode!: Mode;

  @ApiProperty({ type: String, example: 'key_01KAEXAMPLE0000000000000000' })
  key_id!: string;

  @ApiProperty({ type: LimitsResponse })
  limits!: LimitsResponse;

  @ApiProperty({
    enum: KEY_SCOPES,
    isArray: true,
    nullable: true,
    example: null,
    description: 'Null has every scope, including future ones.',
  })
  scopes!: readonly KeyScope[] | null;

  @ApiProperty({ type: RemainingSpendLimitResponse, nullable: true })
  spend_limit!: RemainingSpendLimitResponse | null;
}

/** GET /v1/me: the partner and mode of this key. */
@ApiTags('Account')
@UseGuards(BearerKeyGuard)
@Controller('v1/me')
export class MeController {
  constructor(
    @Inject(APP_CONFIG) private readonly config: Pick<AppConfig, 'rateLimit'>,
    private readonly spending: KeySpending,
  ) {}

  @Get()
  @Responds(AccountResponse, {
    summary: 'Get the account of the key',
    description:
      'Returns the partner, the mode, the scopes and the limits of the API key that makes the call.',
  })
  @NeedsScope('any')
  async getMe(@Caller() caller: PartnerPrincipal): Promise<AccountResponse> {
    const { perMinute, burst } = this.config.rateLimit;
    const { limitedKeyId } = caller;
    const limit = limitedKeyId === null ? null : await this.spending.remainingOf(limitedKeyId);
    return {
      partner_id: caller.partnerId,
      partner_name: caller.partnerName,
      mode: caller.mode,
      key_id: caller.keyId,
      limits: { requests_per_minute: perMinute, burst },
      scopes: caller.scopes,
      spend_limit: limit && { amount: limit.amount, per: 'day', remaining: limit.remaining },
    };
  }
}
