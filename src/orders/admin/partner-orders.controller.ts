import { Controller, Get, Param, Query, UseGuards } from '@nestjs/common';
import { ApiTags } from '@nestjs/swagger';
import { AdminTokenGuard } from '../../auth/index.js';
import { mapPage } from '../../common/page.js';
import { ExistingPartner } from '../../partners/index.js';
import { ListResponse, toListOptions } from '../../infra/http/index.js';
import { RespondsPage } from '../../infra/http/openapi/index.js';
import { OrdersQueryDto, toOrderFilters } from '../api/order-requests.dto.js';
import { OrderResponse, toOrderResponse } from '../api/order.response.js';
import { ReadOrders } from '../read-orders.js';

/** Support's view of a partner's orders, both modes. */
@ApiTags('Support')
@UseGuards(AdminTokenGuard)
@Controller('internal/v1/partners/:pid/orders')
export class PartnerOrdersController {
  constructor(private readonly orders: ReadOrders) {}

  @Get()
  @RespondsPage(OrderResponse, { summary: "List a partner's orders in both modes, newest first" })
  async listPartnerOrders(
    @Param('pid', ExistingPartner) partnerId: string,
    @Query() query: OrdersQueryDto,
  ): Promise<ListResponse<OrderResponse>> {
    const page = await this.orders.list({ partnerId }, toOrderFilters(query), toListOptions(query));
    return new ListResponse(mapPage(page, toOrderResponse));
  }
}
