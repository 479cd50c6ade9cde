import { Body, Controller, Get, Param, Query, Req, Res, UseGuards } from '@nestjs/common';
import { ApiTags } from '@nestjs/swagger';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { BearerKeyGuard, Caller, NeedsScope, PartnerPrincipal } from '../../auth/index.js';
import { mapPage } from '../../common/page.js';
import { LongPolling } from '../../events/index.js';
import { ListResponse, PathId, toListOptions } from '../../infra/http/index.js';
import { Responds, RespondsPage } from '../../infra/http/openapi/responds.js';
import {
  type IdempotentResponse,
  IdempotencyKeyParam,
  type IdempotencyKey,
  IdempotentExecutor,
  IdempotentPost,
  type RenderedResponse,
} from '../../infra/idempotency/index.js';
import { CancelOrder } from '../cancel-order.js';
import { PlaceOrder } from '../place-order.js';
import type { OrderWithEsims } from '../order.js';
import { ReadOrders } from '../orders.repository.js';
import { OrdersQueryDto, PlaceOrderDto, toOrderFilters, toPlaceOrder } from './order-requests.dto.js';
import { OrderResponse, toOrderResponse } from './order.response.js';

@ApiTags('Orders')
@UseGuards(BearerKeyGuard)
@Controller('v1/orders')
export class OrdersController {
  constructor(
    private readonly placing: PlaceOrder,
    private readonly canceling: CancelOrder,
    private readonly orders: ReadOrders,
    private readonly idempotent: IdempotentExecutor,
    private readonly polling: LongPolling,
  ) {}

  @IdempotentPost('/', {
    status: 202,
    response: OrderResponse,
    summary: 'Place an order',
    description:
      'Reserves the price and accepts the order. Its eSIMs follow within seconds: poll the order, or wait for `order.issued` or `order.failed`.',
    location: true,
    refusals: [
      'not_found',
      'insufficient_balance',
      'spend_limit_reached',
      'package_unavailable',
      'price_changed',
      'reference_taken',
      'limit_reached',
    ],
  })
  @NeedsScope('orders:write')
  async placeOrder(
    @Caller() caller: PartnerPrincipal,
    @IdempotencyKeyParam() key: IdempotencyKey,
    @Body() body: PlaceOrderDto,
  ): Promise<RenderedResponse> {
    const command = toPlaceOrder(body, key, caller);
    return this.idempotent.executeReading(
      key,
      (tx) => this.placing.findPackage(tx, caller, command),
      async (tx, found) =>
        accepted({ order: await this.placing.place(tx, caller, command, found), esims: [] }),
    );
  }

  @Get()
  @RespondsPage(OrderResponse, {
    summary: 'List orders, newest first',
    description:
      "Returns the orders of the key's mode. Filter them by status, reference or time of creation.",
  })
  @NeedsScope('orders:read')
  async listOrders(
    @Caller() caller: PartnerPrincipal,
    @Query() query: OrdersQueryDto,
  ): Promise<ListResponse<OrderResponse>> {
    const page = await this.orders.list(caller, toOrderFilters(query), toListOptions(query));
    return new ListResponse(mapPage(page, toOrderResponse));
  }

  @Get(':id')
  @Responds(OrderResponse, {
    summary: 'Get an order',
    description:
      'Returns the order with its status and the ids of its eSIMs. `failure` explains an order that failed. With `Prefer: wait=N`, the call waits until the order is no longer `pending`, `processing` or `canceling`.',
    waits: true,
  })
  @NeedsScope('orders:read')
  async getOrder(
    @Caller() caller: PartnerPrincipal,
    @Param('id', PathId('ord')) id: string,
    @Req() request: FastifyRequest,
    @Res({ passthrough: true }) reply: FastifyReply,
  ): Promise<OrderResponse> {
    const call = { caller, request, reply };
    const read = (): Promise<OrderWithEsims> => this.orders.getById(caller, id);
    return toOrderResponse(await this.polling.readUntilEnded(call, id, read, ({ order }) => order.status));
  }

  @IdempotentPost(':id/cancel', {
    status: 202,
    response: OrderResponse,
    summary: 'Cancel an order and refund it',
    description:
      'Cancels all eSIMs of the order at the wholesaler, then refunds them. An order that is not issued, was topped up, or has a downloaded eSIM gets 409 `order_not_cancelable`.',
    location: true,
    refusals: ['order_not_cancelable'],
  })
  @NeedsScope('orders:write')
  async cancelOrder(
    @Caller() caller: PartnerPrincipal,
    @IdempotencyKeyParam() key: IdempotencyKey,
    @Param('id', PathId('ord')) id: string,
  ): Promise<RenderedResponse> {
    return this.idempotent.execute(key, async (tx) =>
      accepted(await this.orders.complete(tx, await this.canceling.cancel(tx, caller, id))),
    );
  }
}

function accepted(result: OrderWithEsims): IdempotentResponse {
  return { data: toOrderResponse(result), location: `/v1/orders/${result.order.id}` };
}
