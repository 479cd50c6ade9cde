import { Body, Controller, Get, Param, Query, UseGuards } from '@nestjs/common';
import { ApiTags } from '@nestjs/swagger';
import { BearerKeyGuard, Caller, NeedsScope, PartnerPrincipal } from '../../auth/index.js';
import { mapPage } from '../../common/page.js';
import { ListResponse, PathId, toListOptions } from '../../infra/http/index.js';
import { Responds, RespondsPage } from '../../infra/http/openapi/responds.js';
import {
  IdempotencyKeyParam,
  type IdempotencyKey,
  IdempotentExecutor,
  IdempotentPost,
  type IdempotentResponse,
  type RenderedResponse,
} from '../../infra/idempotency/index.js';
import type { RefundRequestEntity } from '../refund-request.entity.js';
import { RefundRequestsRepository } from '../refund-requests.repository.js';
import { RequestRefund } from '../request-refund.js';
import {
  RefundRequestResponse,
  RefundRequestsQueryDto,
  RequestRefundDto,
  toRefundFilters,
  toRefundRequestResponse,
  toRequestRefund,
} from './refund-request.dto.js';

@ApiTags('Refunds')
@UseGuards(BearerKeyGuard)
@Controller('v1/refund-requests')
export class RefundRequestsController {
  constructor(
    private readonly requesting: RequestRefund,
    private readonly requests: RefundRequestsRepository,
    private readonly idempotent: IdempotentExecutor,
  ) {}

  @IdempotentPost('/', {
    status: 202,
    response: RefundRequestResponse,
    summary: 'Request a refund of an eSIM',
    description:
      'A person decides it: poll the request, or wait for `refund.settled`. An eSIM has at most one pending request. An eSIM that is still unused can be refunded at once: cancel its order.',
    location: true,
    refusals: ['not_found', 'conflict', 'limit_reached'],
  })
  @NeedsScope('refunds:write')
  async requestRefund(
    @Caller() caller: PartnerPrincipal,
    @IdempotencyKeyParam() key: IdempotencyKey,
    @Body() body: RequestRefundDto,
  ): Promise<RenderedResponse> {
    return this.idempotent.execute(key, async (tx) =>
      accepted(await this.requesting.request(tx, caller, toRequestRefund(body))),
    );
  }

  @Get()
  @RespondsPage(RefundRequestResponse, {
    summary: 'List refund requests, newest first',
    description: "Returns the refund requests of the key's mode. Filter them by status or eSIM.",
  })
  @NeedsScope('refunds:write')
  async listRefundRequests(
    @Caller() caller: PartnerPrincipal,
    @Query() query: RefundRequestsQueryDto,
  ): Promise<ListResponse<RefundRequestResponse>> {
    const page = await this.requests.list(caller, toRefundFilters(query), toListOptions(query));
    return new ListResponse(mapPage(page, toRefundRequestResponse));
  }

  @Get(':id')
  @Responds(RefundRequestResponse, {
    summary: 'Get a refund request',
    description: 'Returns the request with its status. `amount` and `note` show the decision.',
  })
  @NeedsScope('refunds:write')
  async getRefundRequest(
    @Caller() caller: PartnerPrincipal,
    @Param('id', PathId('rfr')) id: string,
  ): Promise<RefundRequestResponse> {
    return toRefundRequestResponse(await this.requests.getById(caller, id));
  }

  @IdempotentPost(':id/cancel', {
    status: 200,
    response: RefundRequestResponse,
    summary: 'Cancel a refund request',
    description: 'Withdraws a pending request. A request that is not pending gets 409 `conflict`.',
    refusals: ['conflict'],
  })
  @NeedsScope('refunds:write')
  async cancelRefundRequest(
    @Caller() caller: PartnerPrincipal,
    @IdempotencyKeyParam() key: IdempotencyKey,
    @Param('id', PathId('rfr')) id: string,
  ): Promise<RenderedResponse> {
    return this.idempotent.execute(key, async (tx) => ({
      data: toRefundRequestResponse(await this.requesting.cancel(tx, caller, id)),
    }));
  }
}

function accepted(request: RefundRequestEntity): IdempotentResponse {
  return { data: toRefundRequestResponse(request), location: `/v1/refund-requests/${request.id}` };
}
