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
import { Author, type ChangeAuthor } from '../../audit/index.js';
import { AdminTokenGuard } from '../../auth/index.js';
import { mapPage } from '../../common/page.js';
import { ListAnswer, ListQueryDto, PathId, toListOptions } from '../../infra/http/index.js';
import { Answers, AnswersPage, ApiRefusals } from '../../infra/http/openapi/index.js';
import {
  Idempotent,
  type IdempotentCall,
  IdempotencyInterceptor,
  OnceOnly,
  type RenderedAnswer,
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
    private readonly onceOnly: OnceOnly,
  ) {}

  @Get('needs-review')
  @AnswersPage(TopupReviewResponse, {
    summary: 'List top-ups that have waited too long for the word of their upstream, oldest first',
  })
  async listTopupsNeedingReview(@Query() query: ListQueryDto): Promise<ListAnswer<TopupReviewResponse>> {
    return new ListAnswer(mapPage(await this.reviews.list(toListOptions(query)), toTopupReviewResponse));
  }

  @Post(':id/reconcile')
  @Answers(TopupResponse, { summary: 'Settle a top-up that does not settle by itself' })
  @ApiRefusals('conflict')
  @HttpCode(200)
  @UseInterceptors(IdempotencyInterceptor)
  async reconcileTopup(
    @Author() by: ChangeAuthor,
    @Idempotent() call: IdempotentCall,
    @Param('id', PathId('top')) topupId: string,
    @Body() { action, note }: ReconcileTopupDto,
  ): Promise<RenderedAnswer> {
    // Before the transaction, in which nothing outside the database is called (D16).
    const ask = () => this.upstream.hearFor(action, topupId);
    return this.onceOnly.runAfter(call, ask, async (tx, heard) => {
      const topup = await this.reconcile.execute(tx, by, { topupId, action, note, heard });
      return { status: 200, data: toTopupResponse(topup) };
    });
  }
}
