import { Controller, Get, Query, UseGuards } from '@nestjs/common';
import { ApiTags } from '@nestjs/swagger';
import { BearerKeyGuard, Caller, PartnerPrincipal } from '../../auth/index.js';
import { mapPage } from '../../common/page.js';
import { ListResponse, toListOptions } from '../../infra/http/index.js';
import { RespondsPage } from '../../infra/http/openapi/responds.js';
import { CallResponse, toCallResponse } from '../admin/call.response.js';
import { OwnCallsQueryDto, toCallFilters } from '../admin/calls-query.dto.js';
import { CallLogRepository } from '../call-log.repository.js';

/** Reads of this list would fill it: whoever follows it asks again and again. */
const OWN_ROUTE = '/v1/requests';

/** A partner's own calls in the key's mode, for a program that follows them (D52). */
@ApiTags('Requests')
@UseGuards(BearerKeyGuard)
@Controller('v1/requests')
export class OwnRequestsController {
  constructor(private readonly calls: CallLogRepository) {}

  @Get()
  @RespondsPage(CallResponse, {
    summary: "List calls of the key's partner and mode, newest first",
    description:
      'Calls of this list are not in it. A call is listed about a second after its answer. A page of a filter that few ' +
      'calls pass may have fewer items than `limit`, or none, while `has_more` is true: the next page goes on looking.',
  })
  async listOwnRequests(
    @Caller() { partnerId, mode }: PartnerPrincipal,
    @Query() query: OwnCallsQueryDto,
  ): Promise<ListResponse<CallResponse>> {
    const filters = { ...toCallFilters(query), mode, otherThanRoute: OWN_ROUTE };
    const page = await this.calls.list(partnerId, filters, toListOptions(query));
    return new ListResponse(mapPage(page, toCallResponse));
  }
}
