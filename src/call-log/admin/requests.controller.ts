import { Controller, Get, Param, Query, UseGuards } from '@nestjs/common';
import { ApiTags } from '@nestjs/swagger';
import { AdminTokenGuard, NeedsScope } from '../../auth/index.js';
import { NotFound } from '../../common/errors/index.js';
import { mapPage } from '../../common/page.js';
import { ListResponse, PathId, toListOptions } from '../../infra/http/index.js';
import { Responds, RespondsPage } from '../../infra/http/openapi/responds.js';
import { PartnersService } from '../../partners/index.js';
import { CallLogRepository } from '../call-log.repository.js';
import { LoggedCallResponse, toCallResponse } from './call.response.js';
import { CallsQueryDto, toCallFilters } from './calls-query.dto.js';

/** The call log for support: a partner's calls, and the call of a request id (D38). */
@ApiTags('Call log')
@UseGuards(AdminTokenGuard)
@Controller('internal/v1')
export class RequestsController {
  constructor(
    private readonly partners: PartnersService,
    private readonly calls: CallLogRepository,
  ) {}

  @Get('partners/:pid/requests')
  @RespondsPage(LoggedCallResponse, {
    summary: "List a partner's calls, newest first",
    description:
      'If few calls match a filter, a page may have fewer items than `limit`, or none, while `has_more` is true. The next page continues the search.',
  })
  @NeedsScope('requests:read')
  async listPartnerRequests(
    @Param('pid', PathId('ptn')) partnerId: string,
    @Query() query: CallsQueryDto,
  ): Promise<ListResponse<LoggedCallResponse>> {
    await this.partners.getById(partnerId);
    const page = await this.calls.list(partnerId, toCallFilters(query), toListOptions(query));
    return new ListResponse(mapPage(page, toCallResponse));
  }

  @Get('requests/:request_id')
  @Responds(LoggedCallResponse, {
    summary: 'Get one call',
    description: 'Finds the call of any partner by its request id.',
  })
  @NeedsScope('requests:read')
  async getRequest(@Param('request_id', PathId('req')) requestId: string): Promise<LoggedCallResponse> {
    const call = await this.calls.findByRequestId(requestId);
    if (!call) throw new NotFound();
    return toCallResponse(call);
  }
}
