import { Controller, Get, Injectable, Param, UseGuards } from '@nestjs/common';
import { ApiTags } from '@nestjs/swagger';
import {
  type AdminOrPortalPrincipal,
  AdminTokenGuard,
  Caller,
  NeedsScope,
  PortalSessionGuard,
} from '../../auth/index.js';
import { NotFound } from '../../common/errors/index.js';
import { EsimQueries, toEsimResponse } from '../../esims/index.js';
import { PathId } from '../../infra/http/index.js';
import { Responds } from '../../infra/http/openapi/responds.js';
import { TopupsRepository, toTopupResponse } from '../../topups/index.js';
import { OrderWithTimelineResponse, toOrderWithTimelineResponse } from '../order-page.response.js';
import { OrderPages } from '../order-pages.js';
import { EsimOfPartnerResponse, TopupOfPartnerResponse } from './purchased.response.js';

/** The page of an order. */
@Injectable()
abstract class OrderPageHandlers {
  constructor(private readonly orders: OrderPages) {}

  @Get(':id')
  @Responds(OrderWithTimelineResponse, {
    summary: 'Get an order with its timeline',
    description:
      'Returns the order as the partner API shows it, with its history, its deliveries and its refund requests.',
    on: {
      admin: {
        tag: 'Support',
        summary: "Get any partner's order with its timeline",
      },
    },
  })
  @NeedsScope('orders:read')
  async getOrder(
    @Caller() caller: AdminOrPortalPrincipal,
    @Param('id', PathId('ord')) id: string,
  ): Promise<OrderWithTimelineResponse> {
    return toOrderWithTimelineResponse(await this.orders.read(caller, id));
  }
}

@ApiTags('Orders')
@UseGuards(AdminTokenGuard)
@Controller('internal/v1/orders')
export class AnyOrderController extends OrderPageHandlers {}

@ApiTags('Orders')
@UseGuards(PortalSessionGuard)
@Controller('portal/v1/orders')
export class PortalOrderPageController extends OrderPageHandlers {}

/** eSIMs and top-ups of any partner by id, for support. The portal's own controllers show those of its partner. */
@ApiTags('Support')
@UseGuards(AdminTokenGuard)
@Controller('internal/v1')
export class LookupsController {
  constructor(
    private readonly esims: EsimQueries,
    private readonly topups: TopupsRepository,
  ) {}

  @Get('esims/:id')
  @Responds(EsimOfPartnerResponse, {
    summary: "Get any partner's eSIM, without install data",
    description: "Returns the eSIM as the partner's list shows it, with its partner.",
  })
  @NeedsScope('orders:read')
  async getEsimOfAnyPartner(@Param('id', PathId('esim')) id: string): Promise<EsimOfPartnerResponse> {
    const esim = await this.esims.getOfAny(id);
    return { ...toEsimResponse(await this.esims.showOne(esim)), partner_id: esim.partnerId };
  }

  @Get('topups/:id')
  @Responds(TopupOfPartnerResponse, {
    summary: "Get any partner's top-up",
    description: 'Returns the top-up as the partner API shows it, with its partner.',
  })
  @NeedsScope('orders:read')
  async getTopupOfAnyPartner(@Param('id', PathId('top')) id: string): Promise<TopupOfPartnerResponse> {
    const topup = await this.topups.findById(id);
    if (!topup) throw new NotFound();
    const { partnerId: partner_id, acceptedRequestId: accepted_request_id } = topup;
    return { ...toTopupResponse(topup), partner_id, accepted_request_id };
  }
}
