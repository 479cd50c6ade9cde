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
import { BearerKeyGuard, Caller, PartnerPrincipal } from '../../auth/index.js';
import { mapPage } from '../../common/page.js';
import { ListAnswer, PathId, toListOptions } from '../../infra/http/index.js';
import { Answers, AnswersPage, ApiRefusals } from '../../infra/http/openapi/index.js';
import {
  type Answer,
  Idempotent,
  type IdempotentCall,
  IdempotencyInterceptor,
  OnceOnly,
  type RenderedAnswer,
} from '../../infra/idempotency/index.js';
import { CancelOrder } from '../cancel-order.js';
import { PlaceOrder } from '../place-order.js';
import { type OrderWithEsims, ReadOrders } from '../read-orders.js';
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
    private readonly onceOnly: OnceOnly,
  ) {}

  @Post()
  @Answers(OrderResponse, { status: 202, summary: 'Place an order', location: true })
  @ApiRefusals('not_found', 'insufficient_balance', 'package_unavailable', 'price_changed', 'reference_taken')
  @HttpCode(202)
  @UseInterceptors(IdempotencyInterceptor)
  async placeOrder(
    @Caller() caller: PartnerPrincipal,
    @Idempotent() call: IdempotentCall,
    @Body() body: PlaceOrderDto,
  ): Promise<RenderedAnswer> {
    const command = toPlaceOrder(body, call.requestId);
    return this.onceOnly.run(call, async (tx) =>
      accepted({ order: await this.placing.execute(tx, caller, command), esims: [] }),
    );
  }

  @Get()
  @AnswersPage(OrderResponse, { summary: 'List orders, newest first' })
  async listOrders(
    @Caller() caller: PartnerPrincipal,
    @Query() query: OrdersQueryDto,
  ): Promise<ListAnswer<OrderResponse>> {
    const page = await this.orders.list(caller, toOrderFilters(query), toListOptions(query));
    return new ListAnswer(mapPage(page, toOrderResponse));
  }

  @Get(':id')
  @Answers(OrderResponse, { summary: 'Get an order' })
  async getOrder(
    @Caller() caller: PartnerPrincipal,
    @Param('id', PathId('ord')) id: string,
  ): Promise<OrderResponse> {
    return toOrderResponse(await this.orders.getById(caller, id));
  }

  @Post(':id/cancel')
  @Answers(OrderResponse, {
    status: 202,
    summary: 'Cancel an order while no eSIM of it is downloaded, and refund it',
    location: true,
  })
  @ApiRefusals('order_not_cancelable')
  @HttpCode(202)
  @UseInterceptors(IdempotencyInterceptor)
  async cancelOrder(
    @Caller() caller: PartnerPrincipal,
    @Idempotent() call: IdempotentCall,
    @Param('id', PathId('ord')) id: string,
  ): Promise<RenderedAnswer> {
    return this.onceOnly.run(call, async (tx) =>
      accepted(await this.orders.complete(tx, await this.canceling.execute(tx, caller, id))),
    );
  }
}

function accepted(result: OrderWithEsims): Answer {
  return { status: 202, data: toOrderResponse(result), location: `/v1/orders/${result.order.id}` };
}
