import { Controller, Get, Inject, UseGuards } from '@nestjs/common';
import { ApiProperty, ApiTags } from '@nestjs/swagger';
import { MODES, type Mode } from '../../common/mode.js';
import { APP_CONFIG, type AppConfig } from '../../config/index.js';
import { Responds } from '../../infra/http/openapi/responds.js';
import { BearerKeyGuard, Caller } from '../guards.js';
import { PartnerPrincipal } from '../principal.js';

export class LimitsResponse {
  @ApiProperty({ type: 'integer', example: 60 })
  requests_per_minute!: number;

  @ApiProperty({ type: 'integer', example: 120 })
  burst!: number;
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
}

/** GET /v1/me: the partner and mode of this key. */
@ApiTags('Account')
@UseGuards(BearerKeyGuard)
@Controller('v1/me')
export class MeController {
  constructor(@Inject(APP_CONFIG) private readonly config: Pick<AppConfig, 'rateLimit'>) {}

  @Get()
  @Responds(AccountResponse, {
    summary: 'Get the account of the key',
    description: 'Returns the partner, the mode and the limits of the API key that makes the call.',
  })
  getMe(@Caller() caller: PartnerPrincipal): AccountResponse {
    const { perMinute, burst } = this.config.rateLimit;
    return {
      partner_id: caller.partnerId,
      partner_name: caller.partnerName,
      mode: caller.mode,
      key_id: caller.keyId,
      limits: { requests_per_minute: perMinute, burst },
    };
  }
}
