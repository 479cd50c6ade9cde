import { Controller, Get, Param, Query, UseGuards } from '@nestjs/common';
import { ApiTags } from '@nestjs/swagger';
import { AdminTokenGuard, NeedsScope } from '../../auth/index.js';
import { mapPage } from '../../common/page.js';
import { ExistingPartner } from '../../partners/index.js';
import { ListResponse, toListOptions } from '../../infra/http/index.js';
import { RespondsPage } from '../../infra/http/openapi/responds.js';
import {
  OrderResponse,
  OrdersQueryDto,
  ReadOrders,
  toOrderFilters,
  toOrderResponse,
} from '../../orders/index.js';
import {
  TopupsRepository,
  TopupResponse,
  TopupsQueryDto,
  toTopupFilters,
  toTopupResponse,
} from '../../topups/index.js';

/** Support's view of a partner's orders, both modes. */
@ApiTags('Support')
@UseGuards(AdminTokenGuard)
@Controller('internal/v1/partners/:pid/orders')
export class PartnerOrdersController {
  constructor(private readonly orders: ReadOrders) {}

  @Get()
  @RespondsPage(OrderResponse, {
    summary: "List a partner's orders in both modes, newest first",
    description: 'Returns the orders as the partner sees them.',
  })
  @NeedsScope('orders:read')
  async listPartnerOrders(
    @Param('pid', ExistingPartner) partnerId: string,
    @Query() query: OrdersQueryDto,
  ): Promise<ListResponse<OrderResponse>> {
    const page = await this.orders.list({ partnerId }, toOrderFilters(query), toListOptions(query));
    return new ListResponse(mapPage(page, toOrderResponse));
  }
}

/** Support's view of a partner's top-ups, both modes. */
@ApiTags('Support')
@UseGuards(AdminTokenGuard)
@Controller('internal/v1/partners/:pid/topups')
export class PartnerTopupsController {
  constructor(private readonly topups: TopupsRepository) {}

  @Get()
  @RespondsPage(TopupResponse, {
    summary: "List a partner's top-ups in both modes, newest first",
    description: 'Returns the top-ups as the partner sees them.',
  })
  @NeedsScope('orders:read')
  async listPartnerTopups(
    @Param('pid', ExistingPartner) partnerId: string,
    @Query() query: TopupsQueryDto,
  ): Promise<ListResponse<TopupResponse>> {
    const page = await this.topups.list({ partnerId }, toTopupFilters(query), toListOptions(query));
    return new ListResponse(mapPage(page, toTopupResponse));
  }
}
