import { Controller, Get, Query, UseGuards } from '@nestjs/common';
import { ApiPropertyOptional, ApiTags } from '@nestjs/swagger';
import { IsIn } from 'class-validator';
import { Caller, NeedsScope, PortalPrincipal, PortalSessionGuard } from '../../auth/index.js';
import type { Mode } from '../../common/mode.js';
import type { PortalScope } from '../../common/scopes.js';
import { Optional, PortalMode } from '../../infra/http/index.js';
import { Responds } from '../../infra/http/openapi/responds.js';
import { ShowEndpoints, type ShownEndpoint } from '../../webhooks/index.js';
import { FindAttention } from '../find-attention.js';
import { GoLiveChecklist } from '../go-live-checklist.js';
import { Overview, type OverviewWindow } from '../overview.js';
import {
  OverviewResponse,
  toAttentionResponse,
  toCostSeries,
  toCountSeries,
  toDeliverySeries,
  toOverviewWallet,
  WINDOW_NAMES,
} from './overview.response.js';

export class OverviewQueryDto {
  @PortalMode()
  mode?: Mode | null;

  @ApiPropertyOptional({
    enum: WINDOW_NAMES,
    default: '24h',
    description: '24 hours in steps of one, or 7 or 30 days.',
  })
  @Optional()
  @IsIn(WINDOW_NAMES, { message: `must be one of ${WINDOW_NAMES.join(', ')}` })
  window?: OverviewWindow;
}

/** More than the endpoints of a partner in both modes. */
const ALL_ENDPOINTS = { limit: 100, cursor: undefined };

/** The portal's first screen. Each part is for the sessions that may read what it is made of. */
@ApiTags('Overview')
@UseGuards(PortalSessionGuard)
@Controller('portal/v1/overview')
export class OverviewController {
  constructor(
    private readonly overview: Overview,
    private readonly attention: FindAttention,
    private readonly checklist: GoLiveChecklist,
    private readonly endpoints: ShowEndpoints,
  ) {}

  @Get()
  @NeedsScope('any')
  @Responds(OverviewResponse, {
    summary: 'Get the figures of a period beside the one before, and what needs attention',
    description:
      'Returns orders, cost, deliveries and wallet in hours or days of UTC. The figures are at most a minute old. Parts that the session may not see are null or left out.',
  })
  async getOverview(
    @Caller() caller: PortalPrincipal,
    @Query() query: OverviewQueryDto,
  ): Promise<OverviewResponse> {
    const scope = caller.inMode(query);
    const { partnerId, session } = caller;
    const { window = '24h' } = query;
    const may = (needed: PortalScope): boolean => session.scopes.includes(needed);
    const period = await this.overview.periodOf(window);
    const orders = await this.overview.ordersOf(scope, period);
    const endpoints = may('webhooks:read') ? await this.endpointsOf(partnerId) : [];
    const ofMode = endpoints.filter(({ endpoint }) => endpoint.mode === scope.mode);
    const wallet =
      may('wallet:read') && scope.mode === 'live'
        ? await this.overview.walletOf(partnerId, orders.currency, period)
        : null;
    const mayOrders = may('orders:read');
    return {
      window,
      orders: mayOrders ? toCountSeries(orders.series, (step) => step.orders) : null,
      cost: mayOrders ? toCostSeries(orders) : null,
      failed_orders: mayOrders ? toCountSeries(orders.series, (step) => step.failed) : null,
      deliveries: may('webhooks:read')
        ? toDeliverySeries(await this.overview.deliveriesOf(scope, period))
        : null,
      wallet: wallet && toOverviewWallet(wallet),
      attention: (await this.attention.find(scope, ofMode, may)).map(toAttentionResponse),
      checklist: await this.checklist.check(partnerId, endpoints, session),
    };
  }

  private async endpointsOf(partnerId: string): Promise<readonly ShownEndpoint[]> {
    return (await this.endpoints.list({ partnerId }, ALL_ENDPOINTS)).items;
  }
}
