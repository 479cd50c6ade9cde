import { Controller, Get, Param, Query, UseGuards } from '@nestjs/common';
import { ApiTags } from '@nestjs/swagger';
import { Caller, NeedsScope, PortalPrincipal, PortalSessionGuard } from '../../auth/index.js';
import { NotFound } from '../../common/errors/index.js';
import { mapPage } from '../../common/page.js';
import { ListResponse, PathId, toListOptions } from '../../infra/http/index.js';
import { Responds, RespondsPage } from '../../infra/http/openapi/responds.js';
import { LoggedCallResponse, toCallResponse } from '../admin/call.response.js';
import { CallsQueryDto, toCallFilters } from '../admin/calls-query.dto.js';
import { CallLogRepository } from '../call-log.repository.js';

/** A partner's calls in the portal: a list by mode, and one call by its request id. */
@ApiTags('Requests')
@UseGuards(PortalSessionGuard)
@Controller('portal/v1/requests')
export class PortalRequestsController {
  constructor(private readonly calls: CallLogRepository) {}

  @Get()
  @NeedsScope('requests:read')
  @RespondsPage(LoggedCallResponse, {
    summary: 'List the calls of a mode (by default Live or the only one), newest first',
    description:
      'If few calls match a filter, a page may have fewer items than `limit`, or none, while `has_more` is true. The next page continues the search.',
  })
  async listRequests(
    @Caller() caller: PortalPrincipal,
    @Query() query: CallsQueryDto,
  ): Promise<ListResponse<LoggedCallResponse>> {
    const { partnerId, mode } = caller.inMode(query);
    const page = await this.calls.list(partnerId, { ...toCallFilters(query), mode }, toListOptions(query));
    return new ListResponse(mapPage(page, toCallResponse));
  }

  @Get(':request_id')
  @NeedsScope('requests:read')
  @Responds(LoggedCallResponse, { summary: 'Get one call', description: 'Finds the call by its request id.' })
  async getRequest(
    @Caller() caller: PortalPrincipal,
    @Param('request_id', PathId('req')) requestId: string,
  ): Promise<LoggedCallResponse> {
    const call = await this.calls.findByRequestId(requestId);
    if (call?.partnerId !== caller.partnerId) throw new NotFound();
    if (call.mode !== null) caller.assertSees(call.mode);
    return toCallResponse(call);
  }
}
