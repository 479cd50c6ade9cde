import { Body, Controller, Get, Injectable, Param, Query, Req, UseGuards } from '@nestjs/common';
import { ApiTags } from '@nestjs/swagger';
import type { FastifyRequest } from 'fastify';
import { Author, type ChangeAuthor } from '../../audit/index.js';
import {
  type AdminOrPortalPrincipal,
  AdminTokenGuard,
  Caller,
  NeedsScope,
  PartnerId,
  PortalSessionGuard,
} from '../../auth/index.js';
import { mapPage } from '../../common/page.js';
import { ListResponse, ListSlots, PathId, toListOptions } from '../../infra/http/index.js';
import { Responds, RespondsPage } from '../../infra/http/openapi/responds.js';
import {
  type IdempotencyKey,
  IdempotencyKeyParam,
  IdempotentExecutor,
  IdempotentPost,
  type RenderedResponse,
} from '../../infra/idempotency/index.js';
import { ManualSends, SENT_WITHOUT_STEP_UP } from '../manual-sends.js';
import { OwnedWebhooks } from '../owned-webhooks.js';
import { ReplayEvents } from '../replay-events.js';
import { ShowEndpoints } from '../show-endpoints.js';
import { WebhookDeliveriesRepository } from '../webhook-deliveries.repository.js';
import {
  DEFAULT_STATS_WINDOW,
  EndpointStatsQueryDto,
  EndpointStatsResponse,
  toEndpointStatsResponse,
} from './endpoint-stats.dto.js';
import {
  DeliveriesQueryDto,
  ReplayEventsDto,
  toDeliveryFilters,
  toReplayCommand,
} from './webhook-delivery-requests.dto.js';
import { toDeliveryResponse, WebhookDeliveryResponse } from './webhook-delivery.response.js';
import { toPreviewResponse, toReplayResponse, WebhookReplayResponse } from './webhook-replay.response.js';

/** An endpoint's delivery log (spec section 2), and replays of many of its events as one tracked job (D33). */
@Injectable()
abstract class EndpointDeliveryHandlers {
  constructor(
    private readonly owned: OwnedWebhooks,
    private readonly deliveries: WebhookDeliveriesRepository,
    private readonly show: ShowEndpoints,
    private readonly replays: ReplayEvents,
    private readonly idempotent: IdempotentExecutor,
    private readonly slots: ListSlots,
    private readonly manual: ManualSends,
  ) {}

  @Get('deliveries')
  @RespondsPage(WebhookDeliveryResponse, {
    summary: 'List the deliveries of an endpoint, newest first',
    description:
      'Returns the deliveries with the last attempt of each. Filter them by status, event, outcome or time.',
  })
  @NeedsScope('webhooks:read')
  async listDeliveries(
    @Caller() caller: AdminOrPortalPrincipal,
    @PartnerId() partnerId: string,
    @Param('id', PathId('whe')) id: string,
    @Query() query: DeliveriesQueryDto,
  ): Promise<ListResponse<WebhookDeliveryResponse>> {
    const endpoint = await this.owned.endpointEvenDeleted(caller, { partnerId, id });
    const page = await this.deliveries.list(endpoint, toDeliveryFilters(query), toListOptions(query));
    return new ListResponse(mapPage(page, toDeliveryResponse));
  }

  @Get('stats')
  @Responds(EndpointStatsResponse, {
    summary: 'Get the attempts of an endpoint over time',
    description: 'Returns the number of delivered and failed attempts and their latency, in time buckets.',
    on: { portal: { tag: 'Webhook endpoints' } },
  })
  @NeedsScope('webhooks:read')
  async getEndpointStats(
    @Caller() caller: AdminOrPortalPrincipal,
    @PartnerId() partnerId: string,
    @Param('id', PathId('whe')) id: string,
    @Query() query: EndpointStatsQueryDto,
  ): Promise<EndpointStatsResponse> {
    await this.owned.endpointEvenDeleted(caller, { partnerId, id });
    const window = query.window ?? DEFAULT_STATS_WINDOW;
    return toEndpointStatsResponse(window, await this.show.statsOf(id, window));
  }

  @IdempotentPost('replay', {
    status: 202,
    response: WebhookReplayResponse,
    summary: 'Resend the events of a time range',
    description: 'Creates new deliveries in the background. With `dry_run`, it only counts them.',
    on: {
      admin: { tag: 'Webhook replays' },
      portal: {
        description:
          'Creates new deliveries in the background. More than 1,000 events an hour need a session younger than 15 minutes.',
      },
    },
    location: true,
    refusals: ['step_up_required'],
  })
  @NeedsScope('webhooks:replay')
  async startReplay(
    @Author() by: ChangeAuthor,
    @Caller() caller: AdminOrPortalPrincipal,
    @IdempotencyKeyParam() idempotencyKey: IdempotencyKey,
    @PartnerId() partnerId: string,
    @Param('id', PathId('whe')) id: string,
    @Body() body: ReplayEventsDto,
    @Req() request: FastifyRequest,
  ): Promise<RenderedResponse> {
    const key = { partnerId, id };
    const command = toReplayCommand(body);
    const isDryRun = body.dry_run === true;
    if (!isDryRun) await this.manual.take(caller);
    const replay = (): Promise<RenderedResponse> =>
      this.idempotent.execute(idempotencyKey, async (tx) => {
        await this.owned.endpoint(caller, key, tx);
        if (isDryRun) return { data: toPreviewResponse(await this.replays.preview(tx, key, command)) };
        // Count only for callers who may not start a large replay.
        if (!caller.isYoung && (await this.replays.isLargerThan(tx, SENT_WITHOUT_STEP_UP, key, command)))
          caller.assertYoung();
        const started = await this.replays.start(tx, by, key, command);
        return { data: toReplayResponse(started), ...caller.locationOf(`replays/${started.replay.id}`) };
      });
    // Counting costs as much as listing.
    return isDryRun || !caller.isYoung ? this.slots.read(request, replay) : replay();
  }
}

@ApiTags('Webhook deliveries')
@UseGuards(AdminTokenGuard)
@Controller('internal/v1/partners/:pid/webhook-endpoints/:id')
export class EndpointDeliveriesController extends EndpointDeliveryHandlers {}

@ApiTags('Webhook deliveries')
@UseGuards(PortalSessionGuard)
@Controller('portal/v1/webhook-endpoints/:id')
export class PortalEndpointDeliveriesController extends EndpointDeliveryHandlers {}
