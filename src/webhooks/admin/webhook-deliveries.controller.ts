import { Controller, Get, Param, Query, UseGuards } from '@nestjs/common';
import { ApiTags } from '@nestjs/swagger';
import { Author, type ChangeAuthor } from '../../audit/index.js';
import { AdminTokenGuard, NeedsScope } from '../../auth/index.js';
import { NotFound } from '../../common/errors/index.js';
import { mapPage } from '../../common/page.js';
import { ListResponse, PathId, toListOptions } from '../../infra/http/index.js';
import { Responds, RespondsPage } from '../../infra/http/openapi/responds.js';
import {
  IdempotencyKeyParam,
  type IdempotencyKey,
  IdempotentExecutor,
  IdempotentPost,
  type RenderedResponse,
} from '../../infra/idempotency/index.js';
import { ShowEndpoints } from '../show-endpoints.js';
import { SendOnRequest } from '../send-on-request.js';
import { WebhookDeliveriesRepository } from '../webhook-deliveries.repository.js';
import { WebhookEndpointsRepository } from '../webhook-endpoints.repository.js';
import {
  DEFAULT_STATS_WINDOW,
  EndpointStatsQueryDto,
  EndpointStatsResponse,
  toEndpointStatsResponse,
} from './endpoint-stats.dto.js';
import { FindExplanation } from '../find-explanation.js';
import { ExplanationResponse, toExplanationResponse } from './explanation.response.js';
import { DeliveriesQueryDto, toDeliveryFilters } from './webhook-delivery-requests.dto.js';
import {
  toDeliveryResponse,
  toDeliveryWithAttemptsResponse,
  WebhookDeliveryResponse,
  WebhookDeliveryWithAttemptsResponse,
} from './webhook-delivery.response.js';
import { WebhookEndpointsQueryDto } from './webhook-endpoint-requests.dto.js';
import { toEndpointPage, WebhookEndpointResponse } from './webhook-endpoint.response.js';

/** The delivery log (spec section 2) and endpoints across partners, for the portal and for support. */
@ApiTags('Webhook deliveries')
@UseGuards(AdminTokenGuard)
@Controller('internal/v1')
export class WebhookDeliveriesController {
  constructor(
    private readonly endpoints: WebhookEndpointsRepository,
    private readonly deliveries: WebhookDeliveriesRepository,
    private readonly show: ShowEndpoints,
    private readonly explanations: FindExplanation,
    private readonly send: SendOnRequest,
    private readonly idempotent: IdempotentExecutor,
  ) {}

  @Get('webhook-endpoints')
  @RespondsPage(WebhookEndpointResponse, {
    summary: 'List the webhook endpoints of all partners',
    description: 'Returns the endpoints of every partner. Filter them by status to find those that fail.',
  })
  @NeedsScope('webhooks:read')
  async listEndpointsOfAllPartners(
    @Query() query: WebhookEndpointsQueryDto,
  ): Promise<ListResponse<WebhookEndpointResponse>> {
    return new ListResponse(toEndpointPage(await this.show.listAll(query.status, toListOptions(query))));
  }

  @Get('partners/:pid/webhook-endpoints/:id/deliveries')
  @RespondsPage(WebhookDeliveryResponse, {
    summary: 'List the deliveries of an endpoint, newest first',
    description:
      'Returns the deliveries with the last attempt of each. Filter them by status, event, outcome or time.',
  })
  @NeedsScope('webhooks:read')
  async listDeliveries(
    @Param('pid', PathId('ptn')) partnerId: string,
    @Param('id', PathId('whe')) id: string,
    @Query() query: DeliveriesQueryDto,
  ): Promise<ListResponse<WebhookDeliveryResponse>> {
    const endpoint = await this.endpoints.findEvenDeleted({ partnerId, id });
    if (!endpoint) throw new NotFound();
    const page = await this.deliveries.list(endpoint, toDeliveryFilters(query), toListOptions(query));
    return new ListResponse(mapPage(page, toDeliveryResponse));
  }

  @Get('partners/:pid/webhook-endpoints/:id/stats')
  @Responds(EndpointStatsResponse, {
    summary: 'Get the attempts of an endpoint over time',
    description: 'Returns delivered and failed attempts with their latency, in buckets of the window.',
  })
  @NeedsScope('webhooks:read')
  async getEndpointStats(
    @Param('pid', PathId('ptn')) partnerId: string,
    @Param('id', PathId('whe')) id: string,
    @Query() query: EndpointStatsQueryDto,
  ): Promise<EndpointStatsResponse> {
    if (!(await this.endpoints.findEvenDeleted({ partnerId, id }))) throw new NotFound();
    const window = query.window ?? DEFAULT_STATS_WINDOW;
    return toEndpointStatsResponse(window, await this.show.statsOf(id, window));
  }

  @Get('deliveries/:id')
  @Responds(WebhookDeliveryWithAttemptsResponse, {
    summary: 'Get a delivery with its attempts',
    description: 'Returns the delivery with each attempt: its outcome, status code, latency and answer.',
  })
  @NeedsScope('webhooks:read')
  async getDelivery(@Param('id', PathId('dlv')) id: string): Promise<WebhookDeliveryWithAttemptsResponse> {
    const found = await this.deliveries.findWithLog(id);
    if (!found) throw new NotFound();
    return toDeliveryWithAttemptsResponse(found);
  }

  @Get('deliveries/:id/explanation')
  @Responds(ExplanationResponse, {
    summary: 'Explain the state of a delivery',
    description: 'Says who can fix it, how, and what happens next.',
  })
  @NeedsScope('webhooks:read')
  async explainDelivery(@Param('id', PathId('dlv')) id: string): Promise<ExplanationResponse> {
    const delivery = await this.deliveries.find(id);
    if (!delivery) throw new NotFound();
    return toExplanationResponse(await this.explanations.ofDelivery(delivery));
  }

  @IdempotentPost('deliveries/:id/resend', {
    status: 202,
    response: WebhookDeliveryResponse,
    summary: 'Send the event of a delivery once more, as a new delivery',
    description: 'The new delivery has its own id and the same event.',
    location: true,
    refusals: ['conflict'],
  })
  @NeedsScope('webhooks:replay')
  async resendDelivery(
    @Author() by: ChangeAuthor,
    @IdempotencyKeyParam() key: IdempotencyKey,
    @Param('id', PathId('dlv')) id: string,
  ): Promise<RenderedResponse> {
    return this.idempotent.execute(key, async (tx) => {
      const delivery = await this.send.resend(tx, by, id);
      const location = `/internal/v1/deliveries/${delivery.id}`;
      return { data: toDeliveryResponse(delivery), location };
    });
  }
}
