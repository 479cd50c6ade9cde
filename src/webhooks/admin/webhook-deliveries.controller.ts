import { Controller, Get, Injectable, Param, Query, UseGuards } from '@nestjs/common';
import { ApiTags } from '@nestjs/swagger';
import { Author, type ChangeAuthor } from '../../audit/index.js';
import {
  type AdminOrPortalPrincipal,
  AdminTokenGuard,
  Caller,
  NeedsScope,
  PortalSessionGuard,
} from '../../auth/index.js';
import { ListResponse, PathId, toListOptions } from '../../infra/http/index.js';
import { Responds, RespondsPage } from '../../infra/http/openapi/responds.js';
import {
  IdempotencyKeyParam,
  type IdempotencyKey,
  IdempotentExecutor,
  IdempotentPost,
  type RenderedResponse,
} from '../../infra/idempotency/index.js';
import { FindExplanation } from '../find-explanation.js';
import { ManualSends } from '../manual-sends.js';
import { OwnedWebhooks } from '../owned-webhooks.js';
import { ReplayEvents } from '../replay-events.js';
import { SendOnRequest } from '../send-on-request.js';
import { ShowEndpoints } from '../show-endpoints.js';
import { ExplanationResponse, toExplanationResponse } from './explanation.response.js';
import {
  toDeliveryResponse,
  toDeliveryWithAttemptsResponse,
  WebhookDeliveryResponse,
  WebhookDeliveryWithAttemptsResponse,
} from './webhook-delivery.response.js';
import { WebhookEndpointsQueryDto } from './webhook-endpoint-requests.dto.js';
import { toEndpointPage, WebhookEndpointResponse } from './webhook-endpoint.response.js';
import { toReplayResponse, WebhookReplayResponse } from './webhook-replay.response.js';

/** One delivery or replay, by its id (spec section 2, D33). */
@Injectable()
abstract class DeliveryHandlers {
  constructor(
    private readonly owned: OwnedWebhooks,
    private readonly explanations: FindExplanation,
    private readonly send: SendOnRequest,
    private readonly replays: ReplayEvents,
    private readonly idempotent: IdempotentExecutor,
    private readonly manual: ManualSends,
  ) {}

  @Get('deliveries/:id')
  @Responds(WebhookDeliveryWithAttemptsResponse, {
    summary: 'Get a delivery with its attempts',
    description: 'Returns the delivery with each attempt: its outcome, status code, latency and response.',
  })
  @NeedsScope('webhooks:read')
  async getDelivery(
    @Caller() caller: AdminOrPortalPrincipal,
    @Param('id', PathId('dlv')) id: string,
  ): Promise<WebhookDeliveryWithAttemptsResponse> {
    return toDeliveryWithAttemptsResponse(await this.owned.deliveryWithLog(caller, id));
  }

  @Get('deliveries/:id/explanation')
  @Responds(ExplanationResponse, {
    summary: 'Explain the state of a delivery',
    description: 'Returns who can fix it, how, and what happens next.',
    on: { portal: { tag: 'Explanations' } },
  })
  @NeedsScope('webhooks:read')
  async explainDelivery(
    @Caller() caller: AdminOrPortalPrincipal,
    @Param('id', PathId('dlv')) id: string,
  ): Promise<ExplanationResponse> {
    return toExplanationResponse(await this.explanations.ofDelivery(await this.owned.delivery(caller, id)));
  }

  @IdempotentPost('deliveries/:id/resend', {
    status: 202,
    response: WebhookDeliveryResponse,
    summary: 'Resend the event of a delivery as a new delivery',
    description: 'The new delivery has its own id and the same event.',
    on: {
      portal: {
        description:
          'The new delivery has its own id and the same event. More than 1,000 events an hour need a session younger than 15 minutes.',
      },
    },
    location: true,
    refusals: ['conflict', 'step_up_required'],
  })
  @NeedsScope('webhooks:replay')
  async resendDelivery(
    @Author() by: ChangeAuthor,
    @Caller() caller: AdminOrPortalPrincipal,
    @IdempotencyKeyParam() key: IdempotencyKey,
    @Param('id', PathId('dlv')) id: string,
  ): Promise<RenderedResponse> {
    await this.manual.takeResend(caller);
    return this.idempotent.execute(key, async (tx) => {
      await this.owned.delivery(caller, id, tx);
      const delivery = await this.send.resend(tx, by, id);
      return { data: toDeliveryResponse(delivery), ...caller.locationOf(`deliveries/${delivery.id}`) };
    });
  }

  @Get('replays/:id')
  @Responds(WebhookReplayResponse, {
    summary: 'Get a replay',
    description: 'Returns how many deliveries the replay has created and how many are pending.',
    on: { admin: { tag: 'Webhook replays' } },
  })
  @NeedsScope('webhooks:read')
  async getReplay(
    @Caller() caller: AdminOrPortalPrincipal,
    @Param('id', PathId('rpl')) id: string,
  ): Promise<WebhookReplayResponse> {
    return toReplayResponse(await this.owned.replay(caller, id));
  }

  @IdempotentPost('replays/:id/cancel', {
    status: 200,
    response: WebhookReplayResponse,
    summary: 'Cancel a replay',
    description: 'Discards the deliveries of the replay that have not been sent.',
    on: { admin: { tag: 'Webhook replays' } },
    refusals: ['conflict'],
  })
  @NeedsScope('webhooks:replay')
  async cancelReplay(
    @Author() by: ChangeAuthor,
    @Caller() caller: AdminOrPortalPrincipal,
    @IdempotencyKeyParam() key: IdempotencyKey,
    @Param('id', PathId('rpl')) id: string,
  ): Promise<RenderedResponse> {
    return this.idempotent.execute(key, async (tx) => {
      await this.owned.replay(caller, id, tx);
      return { data: toReplayResponse(await this.replays.cancel(tx, by, id)) };
    });
  }
}

@ApiTags('Webhook deliveries')
@UseGuards(AdminTokenGuard)
@Controller('internal/v1')
export class WebhookDeliveriesController extends DeliveryHandlers {}

@ApiTags('Webhook deliveries')
@UseGuards(PortalSessionGuard)
@Controller('portal/v1')
export class PortalDeliveriesController extends DeliveryHandlers {}

/** Endpoints across partners, for support. */
@ApiTags('Webhook deliveries')
@UseGuards(AdminTokenGuard)
@Controller('internal/v1/webhook-endpoints')
export class AllEndpointsController {
  constructor(private readonly show: ShowEndpoints) {}

  @Get()
  @RespondsPage(WebhookEndpointResponse, {
    summary: 'List the webhook endpoints of all partners',
    description: 'Returns the endpoints of every partner. Filter by status to find failing endpoints.',
  })
  @NeedsScope('webhooks:read')
  async listEndpointsOfAllPartners(
    @Query() query: WebhookEndpointsQueryDto,
  ): Promise<ListResponse<WebhookEndpointResponse>> {
    return new ListResponse(toEndpointPage(await this.show.listAll(query.status, toListOptions(query))));
  }
}
