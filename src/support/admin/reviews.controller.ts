import { Body, Controller, Get, Param, Query, UseGuards } from '@nestjs/common';
import { ApiTags } from '@nestjs/swagger';
import { Author, type ChangeAuthor } from '../../audit/index.js';
import { AdminTokenGuard, NeedsScope } from '../../auth/index.js';
import { mapPage } from '../../common/page.js';
import { ListResponse, ListQueryDto, PathId, toListOptions } from '../../infra/http/index.js';
import { ApiRefusals, Responds, RespondsPage } from '../../infra/http/openapi/responds.js';
import {
  IdempotencyKeyParam,
  type IdempotencyKey,
  IdempotentExecutor,
  IdempotentPost,
  type RenderedResponse,
} from '../../infra/idempotency/index.js';
import { OrderResponse, ReadOrders, toOrderResponse } from '../../orders/index.js';
import { TopupResponse, toTopupResponse } from '../../topups/index.js';
import { InspectProviderOrder } from '../inspect-provider-order.js';
import { InspectProviderTopup } from '../inspect-provider-topup.js';
import { OrdersNeedingReview, TopupsNeedingReview } from '../needs-review.js';
import { ResolveOrder } from '../resolve-order.js';
import { ResolveTopup } from '../resolve-topup.js';
import {
  OrderUpstreamResponse,
  ReconcileOrderDto,
  ReconcileTopupDto,
  toOrderUpstreamResponse,
} from './resolve.dto.js';
import {
  OrderReviewResponse,
  toOrderReviewResponse,
  TopupReviewResponse,
  toTopupReviewResponse,
} from './review.response.js';

/** Orders that need review, and support's decisions on them (D22). */
@ApiTags('Support')
@UseGuards(AdminTokenGuard)
@Controller('internal/v1/orders')
export class OrderReviewsController {
  constructor(
    private readonly reviews: OrdersNeedingReview,
    private readonly inspect: InspectProviderOrder,
    private readonly resolving: ResolveOrder,
    private readonly orders: ReadOrders,
    private readonly idempotent: IdempotentExecutor,
  ) {}

  @Get('needs-review')
  @RespondsPage(OrderReviewResponse, {
    summary: 'List orders that need a review, oldest first',
    description: 'Returns orders that have waited too long for an outcome from the wholesaler.',
  })
  @NeedsScope('orders:read')
  async listOrdersNeedingReview(@Query() query: ListQueryDto): Promise<ListResponse<OrderReviewResponse>> {
    return new ListResponse(mapPage(await this.reviews.list(toListOptions(query)), toOrderReviewResponse));
  }

  @Get(':id/upstream')
  @Responds(OrderUpstreamResponse, {
    summary: "Get the wholesaler's view of an order",
    description:
      'Queries the wholesaler now. Works only for an order without a final outcome; others get 409 `conflict`.',
  })
  @ApiRefusals('conflict')
  @NeedsScope('orders:read')
  async getOrderUpstream(@Param('id', PathId('ord')) orderId: string): Promise<OrderUpstreamResponse> {
    return toOrderUpstreamResponse(await this.inspect.inspect(orderId));
  }

  @IdempotentPost(':id/reconcile', {
    status: 200,
    response: OrderResponse,
    summary: 'Settle an order that needs a review',
    description:
      "Queries the wholesaler again, or records support's decision. The note goes to the audit log.",
    refusals: ['conflict'],
  })
  @NeedsScope('orders:resolve')
  async reconcileOrder(
    @Author() by: ChangeAuthor,
    @IdempotencyKeyParam() key: IdempotencyKey,
    @Param('id', PathId('ord')) orderId: string,
    @Body() { action, note }: ReconcileOrderDto,
  ): Promise<RenderedResponse> {
    // Runs before the transaction, which must not call anything outside the database (D16).
    const inspect = () => this.inspect.inspectFor(action, orderId);
    return this.idempotent.executeAfter(key, inspect, async (tx, inspected) => {
      const order = await this.resolving.resolve(tx, by, { id: orderId, action, note, inspected });
      return { data: toOrderResponse(await this.orders.complete(tx, order)) };
    });
  }
}

/** Top-ups that need review, and support's decisions on them. */
@ApiTags('Support')
@UseGuards(AdminTokenGuard)
@Controller('internal/v1/topups')
export class TopupReviewsController {
  constructor(
    private readonly reviews: TopupsNeedingReview,
    private readonly inspect: InspectProviderTopup,
    private readonly resolving: ResolveTopup,
    private readonly idempotent: IdempotentExecutor,
  ) {}

  @Get('needs-review')
  @RespondsPage(TopupReviewResponse, {
    summary: 'List top-ups that need a review, oldest first',
    description: 'Returns top-ups that have waited too long for an outcome from the wholesaler.',
  })
  @NeedsScope('orders:read')
  async listTopupsNeedingReview(@Query() query: ListQueryDto): Promise<ListResponse<TopupReviewResponse>> {
    return new ListResponse(mapPage(await this.reviews.list(toListOptions(query)), toTopupReviewResponse));
  }

  @IdempotentPost(':id/reconcile', {
    status: 200,
    response: TopupResponse,
    summary: 'Settle a top-up that needs a review',
    description:
      "Queries the wholesaler again, or records support's decision. The note goes to the audit log.",
    refusals: ['conflict'],
  })
  @NeedsScope('orders:resolve')
  async reconcileTopup(
    @Author() by: ChangeAuthor,
    @IdempotencyKeyParam() key: IdempotencyKey,
    @Param('id', PathId('top')) topupId: string,
    @Body() { action, note }: ReconcileTopupDto,
  ): Promise<RenderedResponse> {
    // Runs before the transaction, which must not call anything outside the database.
    const inspect = () => this.inspect.inspectFor(action, topupId);
    return this.idempotent.executeAfter(key, inspect, async (tx, inspected) => {
      const topup = await this.resolving.resolve(tx, by, { id: topupId, action, note, inspected });
      return { data: toTopupResponse(topup) };
    });
  }
}
