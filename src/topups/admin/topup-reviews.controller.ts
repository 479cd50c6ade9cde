import { Body, Controller, Get, Param, Query, UseGuards } from '@nestjs/common';
import { ApiTags } from '@nestjs/swagger';
import { Author, type ChangeAuthor } from '../../audit/index.js';
import { AdminTokenGuard } from '../../auth/index.js';
import { mapPage } from '../../common/page.js';
import { ListResponse, ListQueryDto, PathId, toListOptions } from '../../infra/http/index.js';
import { RespondsPage } from '../../infra/http/openapi/index.js';
import {
  IdempotencyKeyParam,
  type IdempotencyKey,
  IdempotentExecutor,
  IdempotentPost,
  type RenderedResponse,
} from '../../infra/idempotency/index.js';
import { TopupResponse, toTopupResponse } from '../api/topup.response.js';
import { HearUpstream } from '../hear-upstream.js';
import { ReconcileTopup } from '../reconcile-topup.js';
import { TopupsNeedingReview } from '../topups-needing-review.js';
import { ReconcileTopupDto } from './topup-review.dto.js';
import { TopupReviewResponse, toTopupReviewResponse } from './topup-review.response.js';

/** What could not be settled by itself, and support's word on it (D22). */
@ApiTags('Support')
@UseGuards(AdminTokenGuard)
@Controller('internal/v1/topups')
export class TopupReviewsController {
  constructor(
    private readonly reviews: TopupsNeedingReview,
    private readonly upstream: HearUpstream,
    private readonly reconcile: ReconcileTopup,
    private readonly idempotent: IdempotentExecutor,
  ) {}

  @Get('needs-review')
  @RespondsPage(TopupReviewResponse, {
    summary: 'List top-ups that have waited too long for the word of their upstream, oldest first',
  })
  async listTopupsNeedingReview(@Query() query: ListQueryDto): Promise<ListResponse<TopupReviewResponse>> {
    return new ListResponse(mapPage(await this.reviews.list(toListOptions(query)), toTopupReviewResponse));
  }

  @IdempotentPost(':id/reconcile', {
    status: 200,
    response: TopupResponse,
    summary: 'Settle a top-up that does not settle by itself',
    refusals: ['conflict'],
  })
  async reconcileTopup(
    @Author() by: ChangeAuthor,
    @IdempotencyKeyParam() key: IdempotencyKey,
    @Param('id', PathId('top')) topupId: string,
    @Body() { action, note }: ReconcileTopupDto,
  ): Promise<RenderedResponse> {
    // Before the transaction, in which nothing outside the database is called (D16).
    const ask = () => this.upstream.hearFor(action, topupId);
    return this.idempotent.executeAfter(key, ask, async (tx, heard) => {
      const topup = await this.reconcile.execute(tx, by, { topupId, action, note, heard });
      return { data: toTopupResponse(topup) };
    });
  }
}
