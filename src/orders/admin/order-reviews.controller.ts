import { Body, Controller, Get, Param, Query, UseGuards } from '@nestjs/common';
import { ApiTags } from '@nestjs/swagger';
import { Author, type ChangeAuthor } from '../../audit/index.js';
import { AdminTokenGuard } from '../../auth/index.js';
import { mapPage } from '../../common/page.js';
import { ListResponse, ListQueryDto, PathId, toListOptions } from '../../infra/http/index.js';
import { Responds, RespondsPage, ApiRefusals } from '../../infra/http/openapi/index.js';
import {
  IdempotencyKeyParam,
  type IdempotencyKey,
  IdempotentExecutor,
  IdempotentPost,
  type RenderedResponse,
} from '../../infra/idempotency/index.js';
import { OrderResponse, toOrderResponse } from '../api/order.response.js';
import { AskUpstream } from '../ask-upstream.js';
import { OrdersNeedingReview } from '../orders-needing-review.js';
import { ReadOrders } from '../read-orders.js';
import { ReconcileOrder } from '../reconcile-order.js';
import { ReconcileOrderDto } from './order-review.dto.js';
import { OrderReviewResponse, toOrderReviewResponse } from './order-review.response.js';
import { OrderUpstreamResponse, toOrderUpstreamResponse } from './order-upstream.response.js';

/** What could not be settled by itself, and support's word on it (D22). */
@ApiTags('Support')
@UseGuards(AdminTokenGuard)
@Controller('internal/v1/orders')
export class OrderReviewsController {
  constructor(
    private readonly reviews: OrdersNeedingReview,
    private readonly upstream: AskUpstream,
    private readonly reconcile: ReconcileOrder,
    private readonly orders: ReadOrders,
    private readonly idempotent: IdempotentExecutor,
  ) {}

  @Get('needs-review')
  @RespondsPage(OrderReviewResponse, {
    summary: 'List orders that have waited too long for the word of their upstream, oldest first',
  })
  async listOrdersNeedingReview(@Query() query: ListQueryDto): Promise<ListResponse<OrderReviewResponse>> {
    return new ListResponse(mapPage(await this.reviews.list(toListOptions(query)), toOrderReviewResponse));
  }

  @Get(':id/upstream')
  @Responds(OrderUpstreamResponse, {
    summary: 'Ask the upstream what it has of an order that waits for its word',
  })
  @ApiRefusals('conflict')
  async getOrderUpstream(@Param('id', PathId('ord')) orderId: string): Promise<OrderUpstreamResponse> {
    return toOrderUpstreamResponse(await this.upstream.look(orderId));
  }

  @IdempotentPost(':id/reconcile', {
    status: 200,
    response: OrderResponse,
    summary: 'Settle an order that does not settle by itself',
    refusals: ['conflict'],
  })
  async reconcileOrder(
    @Author() by: ChangeAuthor,
    @IdempotencyKeyParam() key: IdempotencyKey,
    @Param('id', PathId('ord')) orderId: string,
    @Body() { action, note }: ReconcileOrderDto,
  ): Promise<RenderedResponse> {
    // Before the transaction, in which nothing outside the database is called (D16).
    const ask = () => this.upstream.askFor(action, orderId);
    return this.idempotent.executeAfter(key, ask, async (tx, word) => {
      const order = await this.reconcile.execute(tx, by, { orderId, action, note, word });
      return { data: toOrderResponse(await this.orders.complete(tx, order)) };
    });
  }
}
