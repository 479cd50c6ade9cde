import { Controller, Get, Query, UseGuards } from '@nestjs/common';
import { ApiTags } from '@nestjs/swagger';
import { Caller, NeedsScope, PortalPrincipal, PortalSessionGuard } from '../../auth/index.js';
import type { Mode } from '../../common/mode.js';
import { mapPage } from '../../common/page.js';
import { ListResponse, PortalMode, toListOptions } from '../../infra/http/index.js';
import { RespondsPage } from '../../infra/http/openapi/responds.js';
import { OrdersQueryDto, toOrderFilters } from '../api/order-requests.dto.js';
import { OrderResponse, toOrderResponse } from '../api/order.response.js';
import { ReadOrders } from '../orders.repository.js';

export class PortalOrdersQueryDto extends OrdersQueryDto {
  @PortalMode()
  mode?: Mode | null;
}

/** The list of a partner's orders in the portal; `lookups` has the page of one. */
@ApiTags('Orders')
@UseGuards(PortalSessionGuard)
@Controller('portal/v1/orders')
export class PortalOrdersController {
  constructor(private readonly orders: ReadOrders) {}

  @Get()
  @NeedsScope('orders:read')
  @RespondsPage(OrderResponse, {
    summary: 'List the orders of a mode, newest first',
    description: 'Returns the orders as the partner API shows them.',
  })
  async listOrders(
    @Caller() caller: PortalPrincipal,
    @Query() query: PortalOrdersQueryDto,
  ): Promise<ListResponse<OrderResponse>> {
    const page = await this.orders.list(caller.inMode(query), toOrderFilters(query), toListOptions(query));
    return new ListResponse(mapPage(page, toOrderResponse));
  }
}
