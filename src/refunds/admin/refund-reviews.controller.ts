import { Body, Controller, Get, Param, Query, UseGuards } from '@nestjs/common';
import { ApiTags } from '@nestjs/swagger';
import { Author, type ChangeAuthor } from '../../audit/index.js';
import { AdminTokenGuard, NeedsScope } from '../../auth/index.js';
import { NotFound } from '../../common/errors/index.js';
import type { Tx } from '../../infra/database/index.js';
import { ListResponse, PathId, toListOptions } from '../../infra/http/index.js';
import { RespondsPage } from '../../infra/http/openapi/responds.js';
import {
  IdempotencyKeyParam,
  type IdempotencyKey,
  IdempotentExecutor,
  IdempotentPost,
  type IdempotentResponse,
  type RenderedResponse,
} from '../../infra/idempotency/index.js';
import { DecideRefund } from '../decide-refund.js';
import { RefundFacts } from '../refund-facts.js';
import type { RefundRequestEntity } from '../refund-request.entity.js';
import { RefundRequestsRepository } from '../refund-requests.repository.js';
import {
  ApproveRefundDto,
  RefundReviewResponse,
  RefundReviewsQueryDto,
  RejectRefundDto,
  toRefundReviewResponse,
} from './refund-review.dto.js';

/** The refund requests of all partners, and the portal team's decisions on them. */
@ApiTags('Support')
@UseGuards(AdminTokenGuard)
@Controller('internal/v1/refund-requests')
export class RefundReviewsController {
  constructor(
    private readonly requests: RefundRequestsRepository,
    private readonly facts: RefundFacts,
    private readonly deciding: DecideRefund,
    private readonly idempotent: IdempotentExecutor,
  ) {}

  @Get()
  @RespondsPage(RefundReviewResponse, {
    summary: "List all partners' refund requests, newest first",
    description: 'Returns the requests in both modes, each with facts about its eSIM. Filter them by status.',
  })
  @NeedsScope('orders:read')
  async listRefundReviews(
    @Query() { status, ...query }: RefundReviewsQueryDto,
  ): Promise<ListResponse<RefundReviewResponse>> {
    const page = await this.requests.listOfAll({ status }, toListOptions(query));
    const items = (await this.facts.addTo(page.items)).map(toRefundReviewResponse);
    return new ListResponse({ ...page, items });
  }

  @IdempotentPost(':id/approve', {
    status: 200,
    response: RefundReviewResponse,
    summary: 'Approve a refund request',
    description:
      "Refunds the amount to the partner's wallet. A request that is not pending, or a higher amount than is left, gets 409 `conflict`.",
    refusals: ['conflict'],
  })
  @NeedsScope('money:write')
  async approveRefund(
    @Author() by: ChangeAuthor,
    @IdempotencyKeyParam() key: IdempotencyKey,
    @Param('id', PathId('rfr')) id: string,
    @Body() { amount, note }: ApproveRefundDto,
  ): Promise<RenderedResponse> {
    const approval = { id, amount: amount ?? null, note };
    return this.idempotent.execute(key, async (tx) =>
      this.reviewed(tx, await this.deciding.approve(tx, by, approval)),
    );
  }

  @IdempotentPost(':id/reject', {
    status: 200,
    response: RefundReviewResponse,
    summary: 'Reject a refund request',
    description: 'Refunds nothing. A request that is not pending gets 409 `conflict`.',
    refusals: ['conflict'],
  })
  @NeedsScope('money:write')
  async rejectRefund(
    @Author() by: ChangeAuthor,
    @IdempotencyKeyParam() key: IdempotencyKey,
    @Param('id', PathId('rfr')) id: string,
    @Body() { note }: RejectRefundDto,
  ): Promise<RenderedResponse> {
    return this.idempotent.execute(key, async (tx) =>
      this.reviewed(tx, await this.deciding.reject(tx, by, { id, note })),
    );
  }

  private async reviewed(tx: Tx, request: RefundRequestEntity): Promise<IdempotentResponse> {
    const [review] = await this.facts.addTo([request], tx.manager);
    if (!review) throw new NotFound();
    return { data: toRefundReviewResponse(review) };
  }
}
