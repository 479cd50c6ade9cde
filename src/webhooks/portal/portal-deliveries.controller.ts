import { Body, Controller, Get, Param, Query, Req, UseGuards } from '@nestjs/common';
import { ApiTags } from '@nestjs/swagger';
import type { FastifyRequest } from 'fastify';
import { Author, type ChangeAuthor } from '../../audit/index.js';
import { Caller, NeedsScope, PortalPrincipal, PortalSessionGuard } from '../../auth/index.js';
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
import {
  DeliveriesQueryDto,
  ReplayEventsDto,
  toDeliveryFilters,
  toReplayCommand,
} from '../admin/webhook-delivery-requests.dto.js';
import {
  toDeliveryResponse,
  toDeliveryWithAttemptsResponse,
  WebhookDeliveryResponse,
  WebhookDeliveryWithAttemptsResponse,
} from '../admin/webhook-delivery.response.js';
import {
  toPreviewResponse,
  toReplayResponse,
  WebhookReplayResponse,
} from '../admin/webhook-replay.response.js';
import { ReplayEvents } from '../replay-events.js';
import { SendOnRequest } from '../send-on-request.js';
import { WebhookDeliveriesRepository } from '../webhook-deliveries.repository.js';
import { ManualSends, SENT_WITHOUT_STEP_UP } from './manual-sends.js';
import { OwnedWebhooks } from './owned-webhooks.js';

/** The delivery log of the portal, resends and replays (spec section 2, D33). */
@ApiTags('Webhook deliveries')
@UseGuards(PortalSessionGuard)
@Controller('portal/v1')
export class PortalDeliveriesController {
  constructor(
    private readonly owned: OwnedWebhooks,
    private readonly deliveries: WebhookDeliveriesRepository,
    private readonly send: SendOnRequest,
    private readonly replays: ReplayEvents,
    private readonly idempotent: IdempotentExecutor,
    private readonly slots: ListSlots,
    private readonly manual: ManualSends,
  ) {}

  @Get('webhook-endpoints/:id/deliveries')
  @NeedsScope('webhooks:read')
  @RespondsPage(WebhookDeliveryResponse, {
    summary: 'List the deliveries of an endpoint, newest first',
    description:
      'Returns the deliveries with the last attempt of each. Filter them by status, event, outcome or time.',
  })
  async listDeliveries(
    @Caller() caller: PortalPrincipal,
    @Param('id', PathId('whe')) id: string,
    @Query() query: DeliveriesQueryDto,
  ): Promise<ListResponse<WebhookDeliveryResponse>> {
    const endpoint = await this.owned.endpointEvenDeleted(caller, id);
    const page = await this.deliveries.list(endpoint, toDeliveryFilters(query), toListOptions(query));
    return new ListResponse(mapPage(page, toDeliveryResponse));
  }

  @Get('deliveries/:id')
  @NeedsScope('webhooks:read')
  @Responds(WebhookDeliveryWithAttemptsResponse, {
    summary: 'Get a delivery with its attempts',
    description: 'Returns the delivery with each attempt: its outcome, status code, latency and answer.',
  })
  async getDelivery(
    @Caller() caller: PortalPrincipal,
    @Param('id', PathId('dlv')) id: string,
  ): Promise<WebhookDeliveryWithAttemptsResponse> {
    return toDeliveryWithAttemptsResponse(await this.owned.deliveryWithLog(caller, id));
  }

  @IdempotentPost('deliveries/:id/resend', {
    status: 202,
    response: WebhookDeliveryResponse,
    summary: 'Send the event of a delivery once more, as a new delivery',
    description:
      'The new delivery has its own id and the same event. Sending many needs a session younger than 15 minutes.',
    refusals: ['conflict', 'step_up_required'],
  })
  @NeedsScope('webhooks:replay')
  async resendDelivery(
    @Author() by: ChangeAuthor,
    @Caller() caller: PortalPrincipal,
    @IdempotencyKeyParam() key: IdempotencyKey,
    @Param('id', PathId('dlv')) id: string,
  ): Promise<RenderedResponse> {
    await this.manual.takeResend(caller);
    return this.idempotent.execute(key, async (tx) => {
      await this.owned.delivery(caller, id, tx);
      return { data: toDeliveryResponse(await this.send.resend(tx, by, id)) };
    });
  }

  @IdempotentPost('webhook-endpoints/:id/replay', {
    status: 202,
    response: WebhookReplayResponse,
    summary: 'Send the events of a time range again',
    description:
      'Creates new deliveries in the background. More than 1,000 events an hour need a session younger than 15 minutes.',
    refusals: ['step_up_required'],
  })
  @NeedsScope('webhooks:replay')
  async startReplay(
    @Author() by: ChangeAuthor,
    @Caller() caller: PortalPrincipal,
    @IdempotencyKeyParam() idempotencyKey: IdempotencyKey,
    @Param('id', PathId('whe')) id: string,
    @Body() body: ReplayEventsDto,
    @Req() request: FastifyRequest,
  ): Promise<RenderedResponse> {
    const command = toReplayCommand(body);
    const isDryRun = body.dry_run === true;
    if (!isDryRun) await this.manual.take(caller);
    const replay = (): Promise<RenderedResponse> =>
      this.idempotent.execute(idempotencyKey, async (tx) => {
        const key = await this.owned.endpointKey(caller, id, tx);
        if (isDryRun) return { data: toPreviewResponse(await this.replays.preview(tx, key, command)) };
        // Only who may not start a large one has to wait for the count.
        if (
          !caller.session.isYoung &&
          (await this.replays.isLargerThan(tx, SENT_WITHOUT_STEP_UP, key, command))
        )
          caller.assertYoung();
        return { data: toReplayResponse(await this.replays.start(tx, by, key, command)) };
      });
    // What counts reads as much as a list does.
    return isDryRun || !caller.session.isYoung ? this.slots.read(request, replay) : replay();
  }

  @Get('replays/:id')
  @NeedsScope('webhooks:read')
  @Responds(WebhookReplayResponse, {
    summary: 'Get a replay',
    description: 'Returns how many deliveries the replay has created and how many are pending.',
  })
  async getReplay(
    @Caller() caller: PortalPrincipal,
    @Param('id', PathId('rpl')) id: string,
  ): Promise<WebhookReplayResponse> {
    return toReplayResponse(await this.owned.replay(caller, id));
  }

  @IdempotentPost('replays/:id/cancel', {
    status: 200,
    response: WebhookReplayResponse,
    summary: 'Cancel a replay',
    description: 'Discards the deliveries of the replay that are not sent yet.',
    refusals: ['conflict'],
  })
  @NeedsScope('webhooks:replay')
  async cancelReplay(
    @Author() by: ChangeAuthor,
    @Caller() caller: PortalPrincipal,
    @IdempotencyKeyParam() key: IdempotencyKey,
    @Param('id', PathId('rpl')) id: string,
  ): Promise<RenderedResponse> {
    return this.idempotent.execute(key, async (tx) => {
      await this.owned.replay(caller, id, tx);
      return { data: toReplayResponse(await this.replays.cancel(tx, by, id)) };
    });
  }
}
