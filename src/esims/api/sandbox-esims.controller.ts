import { Body, Controller, Param, UseGuards } from '@nestjs/common';
import { ApiTags } from '@nestjs/swagger';
import { BearerKeyGuard, Caller, NeedsScope, PartnerPrincipal, SandboxOnlyGuard } from '../../auth/index.js';
import { type FieldError, ValidationFailed } from '../../common/errors/index.js';
import type { Tx } from '../../infra/database/index.js';
import { PathId } from '../../infra/http/index.js';
import {
  type IdempotencyKey,
  IdempotencyKeyParam,
  IdempotentExecutor,
  IdempotentPost,
  type IdempotentResponse,
  type RenderedResponse,
} from '../../infra/idempotency/index.js';
import type { EsimEntity } from '../esim.entity.js';
import { EsimQueries } from '../esim-queries.js';
import { type SimulatedUse, SimulateEsim } from '../simulate-esim.js';
import { ConsumeDto, EsimResponse, toEsimResponse } from './esim.dto.js';

@ApiTags('Sandbox')
@UseGuards(BearerKeyGuard, SandboxOnlyGuard)
@Controller('v1/sandbox/esims/:id')
export class SandboxEsimsController {
  constructor(
    private readonly simulate: SimulateEsim,
    private readonly esims: EsimQueries,
    private readonly idempotent: IdempotentExecutor,
  ) {}

  @IdempotentPost('activate', {
    status: 200,
    response: EsimResponse,
    summary: 'Simulate the first use of an eSIM',
    description:
      'Works with Sandbox keys only. Activates the eSIM and sends `esim.activated`. A second call changes nothing and sends no event.',
    refusals: ['sandbox_only', 'esim_not_ready', 'limit_reached'],
  })
  @NeedsScope('esims:write')
  async activateEsim(
    @Caller() caller: PartnerPrincipal,
    @IdempotencyKeyParam() key: IdempotencyKey,
    @Param('id', PathId('esim')) id: string,
  ): Promise<RenderedResponse> {
    return this.idempotent.execute(key, async (tx) =>
      this.ok(tx, await this.simulate.activate(tx, caller, id)),
    );
  }

  @IdempotentPost('consume', {
    status: 200,
    response: EsimResponse,
    summary: 'Simulate data usage',
    description:
      'Works with Sandbox keys only. Send exactly one of `bytes` and `percent`. It is added to the data used. Sends `esim.usage.threshold` at 50, 80 and 100 percent.',
    refusals: ['sandbox_only', 'esim_not_ready', 'limit_reached'],
  })
  @NeedsScope('esims:write')
  async consumeData(
    @Caller() caller: PartnerPrincipal,
    @IdempotencyKeyParam() key: IdempotencyKey,
    @Param('id', PathId('esim')) id: string,
    @Body() body: ConsumeDto,
  ): Promise<RenderedResponse> {
    const use = toSimulatedUse(body);
    return this.idempotent.execute(key, async (tx) =>
      this.ok(tx, await this.simulate.consume(tx, caller, id, use)),
    );
  }

  @IdempotentPost('expire', {
    status: 200,
    response: EsimResponse,
    summary: 'Simulate the end of the plan in use',
    description:
      'Works with Sandbox keys only. Ends the plan in use. If another one is queued, it starts. Otherwise the eSIM ends and sends `esim.expired`; a further call changes nothing and sends no event.',
    refusals: ['sandbox_only', 'esim_not_ready', 'limit_reached'],
  })
  @NeedsScope('esims:write')
  async expireEsim(
    @Caller() caller: PartnerPrincipal,
    @IdempotencyKeyParam() key: IdempotencyKey,
    @Param('id', PathId('esim')) id: string,
  ): Promise<RenderedResponse> {
    return this.idempotent.execute(key, async (tx) =>
      this.ok(tx, await this.simulate.expire(tx, caller, id)),
    );
  }

  private async ok(tx: Tx, esim: EsimEntity): Promise<IdempotentResponse> {
    return { data: toEsimResponse(await this.esims.showOne(esim, tx.manager)) };
  }
}

const EXACTLY_ONE: FieldError = {
  pointer: '',
  code: 'exactly_one_of',
  message: 'must have exactly one of bytes and percent',
};

function toSimulatedUse({ bytes, percent }: ConsumeDto): SimulatedUse {
  if (bytes != null && percent == null) return { bytes };
  if (percent != null && bytes == null) return { percent };
  throw new ValidationFailed([EXACTLY_ONE]);
}
