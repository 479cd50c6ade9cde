import { Body, Controller, Get, Param, Query, UseGuards } from '@nestjs/common';
import { ApiTags } from '@nestjs/swagger';
import { Author, type ChangeAuthor } from '../../audit/index.js';
import { Caller, NeedsScope, PortalPrincipal, PortalSessionGuard } from '../../auth/index.js';
import type { Mode } from '../../common/mode.js';
import { mapPage } from '../../common/page.js';
import { ListResponse, PathId, PortalMode, toListOptions } from '../../infra/http/index.js';
import { Responds, RespondsPage } from '../../infra/http/openapi/responds.js';
import {
  IdempotencyKeyParam,
  type IdempotencyKey,
  IdempotentExecutor,
  IdempotentPost,
  type RenderedResponse,
} from '../../infra/idempotency/index.js';
import {
  RefundRequestResponse,
  RefundRequestsQueryDto,
  RequestRefundDto,
  toRefundFilters,
  toRefundRequestResponse,
  toRequestRefund,
} from '../api/refund-request.dto.js';
import { RefundRequestsRepository } from '../refund-requests.repository.js';
import { RequestRefund } from '../request-refund.js';

export class PortalRefundRequestsQueryDto extends RefundRequestsQueryDto {
  @PortalMode()
  mode?: Mode | null;
}

/** A partner's refund requests in the portal. */
@ApiTags('Refunds')
@UseGuards(PortalSessionGuard)
@Controller('portal/v1/refund-requests')
export class PortalRefundRequestsController {
  constructor(
    private readonly requesting: RequestRefund,
    private readonly requests: RefundRequestsRepository,
    private readonly idempotent: IdempotentExecutor,
  ) {}

  @IdempotentPost('/', {
    status: 202,
    response: RefundRequestResponse,
    summary: 'Request a refund of an eSIM',
    description: 'A person decides it. An eSIM has at most one pending request.',
    refusals: ['not_found', 'conflict', 'limit_reached'],
  })
  @NeedsScope('refunds:write')
  async requestRefund(
    @Author() by: ChangeAuthor,
    @Caller() caller: PortalPrincipal,
    @IdempotencyKeyParam() key: IdempotencyKey,
    @Body() body: RequestRefundDto,
  ): Promise<RenderedResponse> {
    return this.idempotent.execute(key, async (tx) => {
      const request = await this.requesting.request(tx, caller.anyMode, toRequestRefund(body), by);
      return { data: toRefundRequestResponse(request) };
    });
  }

  @Get()
  @NeedsScope('orders:read')
  @RespondsPage(RefundRequestResponse, {
    summary: 'List the refund requests of a mode, newest first',
    description: 'Returns the requests as the partner API shows them.',
  })
  async listRefundRequests(
    @Caller() caller: PortalPrincipal,
    @Query() query: PortalRefundRequestsQueryDto,
  ): Promise<ListResponse<RefundRequestResponse>> {
    const page = await this.requests.list(caller.inMode(query), toRefundFilters(query), toListOptions(query));
    return new ListResponse(mapPage(page, toRefundRequestResponse));
  }

  @Get(':id')
  @NeedsScope('orders:read')
  @Responds(RefundRequestResponse, {
    summary: 'Get a refund request',
    description: 'Returns the request as the partner API shows it.',
  })
  async getRefundRequest(
    @Caller() caller: PortalPrincipal,
    @Param('id', PathId('rfr')) id: string,
  ): Promise<RefundRequestResponse> {
    return toRefundRequestResponse(await this.requests.getById(caller.anyMode, id));
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
    @Author() by: ChangeAuthor,
    @Caller() caller: PortalPrincipal,
    @IdempotencyKeyParam() key: IdempotencyKey,
    @Param('id', PathId('rfr')) id: string,
  ): Promise<RenderedResponse> {
    return this.idempotent.execute(key, async (tx) => ({
      data: toRefundRequestResponse(await this.requesting.cancel(tx, caller.anyMode, id, by)),
    }));
  }
}
