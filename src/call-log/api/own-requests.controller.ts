import { Controller, Get, Query, UseGuards } from '@nestjs/common';
import { ApiTags } from '@nestjs/swagger';
import { BearerKeyGuard, Caller, NeedsScope, PartnerPrincipal } from '../../auth/index.js';
import { AppError } from '../../common/errors/index.js';
import { mapPage } from '../../common/page.js';
import { ListResponse, toListOptions } from '../../infra/http/index.js';
import { RespondsPage } from '../../infra/http/openapi/responds.js';
import { LoggedCallResponse, toCallResponse } from '../admin/call.response.js';
import { OwnCallsQueryDto, toCallFilters } from '../admin/calls-query.dto.js';
import { CallLogRepository } from '../call-log.repository.js';

/** Excluded, because programs that poll this list would fill it with their own reads. */
const OWN_ROUTE = '/v1/requests';
const OWN_CALLS_ONLY =
  'A key with scopes lists only its own calls. Omit key_id, or use a key with full access.';

/** A partner's own calls in the key's mode, for a program that follows them (D52). */
@ApiTags('Requests')
@UseGuards(BearerKeyGuard)
@Controller('v1/requests')
export class OwnRequestsController {
  constructor(private readonly calls: CallLogRepository) {}

  @Get()
  @RespondsPage(LoggedCallResponse, {
    summary: "List the calls of the key's partner and mode, newest first",
    description:
      'A key with scopes gets only its own calls. Omits calls of this operation. A call appears about a second after its response. If few calls match a filter, a page may have fewer items than `limit`, or none, while `has_more` is true. The next page continues the search.',
  })
  @NeedsScope('any')
  async listRequests(
    @Caller() { partnerId, mode, keyId, scopes }: PartnerPrincipal,
    @Query() query: OwnCallsQueryDto,
  ): Promise<ListResponse<LoggedCallResponse>> {
    const { key_id: wanted = keyId } = query;
    if (scopes !== null && wanted !== keyId) throw new AppError('forbidden', { detail: OWN_CALLS_ONLY });
    const own = scopes === null ? {} : { keyId };
    const filters = { ...toCallFilters(query), ...own, mode, otherThanRoute: OWN_ROUTE };
    const page = await this.calls.list(partnerId, filters, toListOptions(query));
    return new ListResponse(mapPage(page, toCallResponse));
  }
}
