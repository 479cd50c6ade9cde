import { Body, Controller, HttpCode, Param, Post, UseGuards, UseInterceptors } from '@nestjs/common';
import { ApiTags } from '@nestjs/swagger';
import { BearerKeyGuard, Caller, PartnerPrincipal, SandboxOnlyGuard } from '../../auth/index.js';
import { type FieldError, ValidationFailed } from '../../common/errors/index.js';
import { PathId } from '../../infra/http/index.js';
import { Answers, ApiRefusals } from '../../infra/http/openapi/index.js';
import {
  type Answer,
  Idempotent,
  type IdempotentCall,
  IdempotencyInterceptor,
  OnceOnly,
  type RenderedAnswer,
} from '../../infra/idempotency/index.js';
import type { EsimEntity } from '../esim.entity.js';
import { SimulateEsim, type SimulatedUse } from '../simulate-esim.js';
import { ConsumeDto } from './esim-requests.dto.js';
import { EsimResponse, toEsimResponse } from './esim.response.js';

@ApiTags('Sandbox')
@UseGuards(BearerKeyGuard, SandboxOnlyGuard)
@UseInterceptors(IdempotencyInterceptor)
@Controller('v1/sandbox/esims/:id')
export class SandboxEsimsController {
  constructor(
    private readonly simulate: SimulateEsim,
    private readonly onceOnly: OnceOnly,
  ) {}

  @Post('activate')
  @Answers(EsimResponse, { summary: 'Play the first use of an eSIM on a device' })
  @ApiRefusals('sandbox_only', 'esim_not_ready')
  @HttpCode(200)
  async activateEsim(
    @Caller() caller: PartnerPrincipal,
    @Idempotent() call: IdempotentCall,
    @Param('id', PathId('esim')) id: string,
  ): Promise<RenderedAnswer> {
    return this.onceOnly.run(call, async (tx) => ok(await this.simulate.activate(tx, caller, id)));
  }

  @Post('consume')
  @Answers(EsimResponse, { summary: 'Play data usage: exactly one of `bytes` and `percent`' })
  @ApiRefusals('sandbox_only', 'esim_not_ready')
  @HttpCode(200)
  async consumeData(
    @Caller() caller: PartnerPrincipal,
    @Idempotent() call: IdempotentCall,
    @Param('id', PathId('esim')) id: string,
    @Body() body: ConsumeDto,
  ): Promise<RenderedAnswer> {
    const use = toSimulatedUse(body);
    return this.onceOnly.run(call, async (tx) => ok(await this.simulate.consume(tx, caller, id, use)));
  }

  @Post('expire')
  @Answers(EsimResponse, { summary: 'Play the end of an eSIM' })
  @ApiRefusals('sandbox_only', 'esim_not_ready')
  @HttpCode(200)
  async expireEsim(
    @Caller() caller: PartnerPrincipal,
    @Idempotent() call: IdempotentCall,
    @Param('id', PathId('esim')) id: string,
  ): Promise<RenderedAnswer> {
    return this.onceOnly.run(call, async (tx) => ok(await this.simulate.expire(tx, caller, id)));
  }
}

function ok(esim: EsimEntity): Answer {
  return { status: 200, data: toEsimResponse(esim) };
}

const EXACTLY_ONE: FieldError = {
  pointer: '',
  code: 'exactly_one_of',
  message: 'Exactly one of bytes and percent is needed.',
};

function toSimulatedUse({ bytes, percent }: ConsumeDto): SimulatedUse {
  if (bytes != null && percent == null) return { bytes };
  if (percent != null && bytes == null) return { percent };
  throw new ValidationFailed([EXACTLY_ONE]);
}
