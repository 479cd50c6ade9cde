import {
  Body,
  Controller,
  Get,
  HttpCode,
  Param,
  Post,
  Query,
  UseGuards,
  UseInterceptors,
} from '@nestjs/common';
import { ApiTags } from '@nestjs/swagger';
import { BearerKeyGuard, Caller, PartnerPrincipal } from '../../auth/index.js';
import { mapPage } from '../../common/page.js';
import { ListAnswer, PathId, toListOptions } from '../../infra/http/index.js';
import { Answers, AnswersPage, ApiRefusals } from '../../infra/http/openapi/index.js';
import {
  Idempotent,
  type IdempotentCall,
  IdempotencyInterceptor,
  OnceOnly,
  type RenderedAnswer,
} from '../../infra/idempotency/index.js';
import { PlaceTopup } from '../place-topup.js';
import { ReadTopups } from '../read-topups.js';
import { PlaceTopupDto, toPlaceTopup, toTopupFilters, TopupsQueryDto } from './topup-requests.dto.js';
import { TopupResponse, toTopupResponse } from './topup.response.js';

@ApiTags('Top-ups')
@UseGuards(BearerKeyGuard)
@Controller('v1/topups')
export class TopupsController {
  constructor(
    private readonly placing: PlaceTopup,
    private readonly topups: ReadTopups,
    private readonly onceOnly: OnceOnly,
  ) {}

  @Post()
  @Answers(TopupResponse, { status: 202, summary: 'Top up an eSIM', location: true })
  @ApiRefusals(
    'not_found',
    'insufficient_balance',
    'esim_expired',
    'esim_not_ready',
    'topup_not_supported',
    'package_unavailable',
    'price_changed',
    'reference_taken',
  )
  @HttpCode(202)
  @UseInterceptors(IdempotencyInterceptor)
  async placeTopup(
    @Caller() caller: PartnerPrincipal,
    @Idempotent() call: IdempotentCall,
    @Body() body: PlaceTopupDto,
  ): Promise<RenderedAnswer> {
    const command = toPlaceTopup(body, call.requestId);
    return this.onceOnly.run(call, async (tx) => {
      const topup = await this.placing.execute(tx, caller, command);
      return { status: 202, data: toTopupResponse(topup), location: `/v1/topups/${topup.id}` };
    });
  }

  @Get()
  @AnswersPage(TopupResponse, { summary: 'List top-ups, newest first' })
  async listTopups(
    @Caller() caller: PartnerPrincipal,
    @Query() query: TopupsQueryDto,
  ): Promise<ListAnswer<TopupResponse>> {
    const page = await this.topups.list(caller, toTopupFilters(query), toListOptions(query));
    return new ListAnswer(mapPage(page, toTopupResponse));
  }

  @Get(':id')
  @Answers(TopupResponse, { summary: 'Get a top-up' })
  async getTopup(
    @Caller() caller: PartnerPrincipal,
    @Param('id', PathId('top')) id: string,
  ): Promise<TopupResponse> {
    return toTopupResponse(await this.topups.getById(caller, id));
  }
}
