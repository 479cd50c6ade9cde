import { Body, Controller, Get, Param, Query, Req, Res, UseGuards } from '@nestjs/common';
import { ApiTags } from '@nestjs/swagger';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { BearerKeyGuard, Caller, NeedsScope, PartnerPrincipal } from '../../auth/index.js';
import { mapPage } from '../../common/page.js';
import { LongPolling } from '../../events/index.js';
import { ListResponse, PathId, toListOptions } from '../../infra/http/index.js';
import { Responds, RespondsPage } from '../../infra/http/openapi/responds.js';
import {
  IdempotencyKeyParam,
  type IdempotencyKey,
  IdempotentExecutor,
  IdempotentPost,
  type RenderedResponse,
} from '../../infra/idempotency/index.js';
import { PlaceTopup } from '../place-topup.js';
import type { TopupEntity } from '../topup.js';
import { TopupsRepository } from '../topups.repository.js';
import { PlaceTopupDto, toPlaceTopup, toTopupFilters, TopupsQueryDto } from './topup-requests.dto.js';
import { TopupResponse, toTopupResponse } from './topup.response.js';

@ApiTags('Topups')
@UseGuards(BearerKeyGuard)
@Controller('v1/topups')
export class TopupsController {
  constructor(
    private readonly placing: PlaceTopup,
    private readonly topups: TopupsRepository,
    private readonly idempotent: IdempotentExecutor,
    private readonly polling: LongPolling,
  ) {}

  @IdempotentPost('/', {
    status: 202,
    response: TopupResponse,
    summary: 'Top up an eSIM',
    description:
      'Reserves the price and accepts the top-up of an existing eSIM. Poll the top-up, or wait for `order.topup.completed` or `order.topup.failed`.',
    location: true,
    refusals: [
      'not_found',
      'insufficient_balance',
      'spend_limit_reached',
      'esim_expired',
      'esim_not_ready',
      'topup_not_supported',
      'package_unavailable',
      'price_changed',
      'reference_taken',
      'limit_reached',
    ],
  })
  @NeedsScope('topups:write')
  async placeTopup(
    @Caller() caller: PartnerPrincipal,
    @IdempotencyKeyParam() key: IdempotencyKey,
    @Body() body: PlaceTopupDto,
  ): Promise<RenderedResponse> {
    const command = toPlaceTopup(body, key, caller);
    return this.idempotent.execute(key, async (tx) => {
      const topup = await this.placing.place(tx, caller, command);
      return { data: toTopupResponse(topup), location: `/v1/topups/${topup.id}` };
    });
  }

  @Get()
  @RespondsPage(TopupResponse, {
    summary: 'List top-ups, newest first',
    description: "Returns the top-ups of the key's mode. Filter them by eSIM, status or reference.",
  })
  @NeedsScope('orders:read')
  async listTopups(
    @Caller() caller: PartnerPrincipal,
    @Query() query: TopupsQueryDto,
  ): Promise<ListResponse<TopupResponse>> {
    const page = await this.topups.list(caller, toTopupFilters(query), toListOptions(query));
    return new ListResponse(mapPage(page, toTopupResponse));
  }

  @Get(':id')
  @Responds(TopupResponse, {
    summary: 'Get a top-up',
    description:
      'Returns the top-up with its status. `failure` explains a top-up that failed. With `Prefer: wait=N`, the call waits until the top-up is no longer `pending` or `processing`.',
    waits: true,
  })
  @NeedsScope('orders:read')
  async getTopup(
    @Caller() caller: PartnerPrincipal,
    @Param('id', PathId('top')) id: string,
    @Req() request: FastifyRequest,
    @Res({ passthrough: true }) reply: FastifyReply,
  ): Promise<TopupResponse> {
    const call = { caller, request, reply };
    const read = (): Promise<TopupEntity> => this.topups.getById(caller, id);
    return toTopupResponse(await this.polling.readUntilEnded(call, id, read, ({ status }) => status));
  }
}
