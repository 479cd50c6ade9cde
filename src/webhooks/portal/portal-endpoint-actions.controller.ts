import { Body, Controller, Param, UseGuards } from '@nestjs/common';
import { ApiTags } from '@nestjs/swagger';
import { Author, type ChangeAuthor } from '../../audit/index.js';
import { Caller, NeedsScope, PortalPrincipal, PortalSessionGuard } from '../../auth/index.js';
import type { Tx } from '../../infra/database/index.js';
import { PathId } from '../../infra/http/index.js';
import {
  type IdempotencyKey,
  IdempotencyKeyParam,
  IdempotentExecutor,
  IdempotentPost,
  type IdempotentResponse,
  type RenderedResponse,
} from '../../infra/idempotency/index.js';
import { toDeliveryResponse, WebhookDeliveryResponse } from '../admin/webhook-delivery.response.js';
import {
  DEFAULT_GRACE_SECONDS,
  EnableWebhookEndpointDto,
  RotateWebhookSecretDto,
} from '../admin/webhook-endpoint-requests.dto.js';
import {
  RotatedWebhookSecretResponse,
  toEndpointResponse,
  toRotatedSecretResponse,
  WebhookEndpointResponse,
} from '../admin/webhook-endpoint.response.js';
import { SendOnRequest } from '../send-on-request.js';
import { ShowEndpoints } from '../show-endpoints.js';
import type { WebhookEndpointEntity } from '../webhook-endpoint.entity.js';
import { WebhookEndpointsService } from '../webhook-endpoints.service.js';
import { ManualSends } from './manual-sends.js';
import { OwnedWebhooks } from './owned-webhooks.js';

/** The status switch, the secret and a test of an endpoint (D29, D32). */
@ApiTags('Webhook endpoints')
@UseGuards(PortalSessionGuard)
@Controller('portal/v1/webhook-endpoints/:id')
export class PortalEndpointActionsController {
  constructor(
    private readonly owned: OwnedWebhooks,
    private readonly endpoints: WebhookEndpointsService,
    private readonly show: ShowEndpoints,
    private readonly send: SendOnRequest,
    private readonly idempotent: IdempotentExecutor,
    private readonly manual: ManualSends,
  ) {}

  @IdempotentPost('enable', {
    status: 200,
    response: WebhookEndpointResponse,
    summary: 'Enable a webhook endpoint',
    description:
      'Resending what failed, or discarding what was held, needs a session younger than 15 minutes.',
    refusals: ['step_up_required'],
  })
  @NeedsScope('webhooks:write')
  async enableEndpoint(
    @Author() by: ChangeAuthor,
    @Caller() caller: PortalPrincipal,
    @IdempotencyKeyParam() key: IdempotencyKey,
    @Param('id', PathId('whe')) id: string,
    @Body() body?: EnableWebhookEndpointDto,
  ): Promise<RenderedResponse> {
    const choice = { held: body?.held ?? 'release', failed: body?.failed ?? 'leave' };
    // As a replay of any size, and as a loss of any size.
    if (choice.failed === 'resend' || choice.held === 'discard') caller.assertYoung();
    return this.idempotent.execute(key, async (tx) => {
      const of = await this.owned.endpointKey(caller, id, tx);
      return this.ok(tx, await this.endpoints.enable(tx, by, of, choice));
    });
  }

  @IdempotentPost('disable', {
    status: 200,
    response: WebhookEndpointResponse,
    summary: 'Disable a webhook endpoint',
    description:
      'Stops sending. New deliveries are held until the endpoint is enabled. A live endpoint needs a session younger than 15 minutes.',
    refusals: ['step_up_required'],
  })
  @NeedsScope('webhooks:write')
  async disableEndpoint(
    @Author() by: ChangeAuthor,
    @Caller() caller: PortalPrincipal,
    @IdempotencyKeyParam() key: IdempotencyKey,
    @Param('id', PathId('whe')) id: string,
  ): Promise<RenderedResponse> {
    const of = { partnerId: caller.partnerId, id };
    return this.idempotent.execute(key, async (tx) => {
      // Until somebody notices, the partner's programs learn of nothing.
      if ((await this.owned.endpoint(caller, id, tx)).mode === 'live') caller.assertYoung();
      return this.ok(tx, await this.endpoints.disable(tx, by, of));
    });
  }

  @IdempotentPost('rotate-secret', {
    status: 200,
    response: RotatedWebhookSecretResponse,
    summary: 'Rotate the signing secret',
    description:
      'Only this answer shows the new secret. The old one signs as well for `grace_seconds`. Needs a session younger than 15 minutes.',
    refusals: ['step_up_required'],
  })
  @NeedsScope('webhooks:write')
  async rotateSecret(
    @Author() by: ChangeAuthor,
    @Caller() caller: PortalPrincipal,
    @IdempotencyKeyParam() key: IdempotencyKey,
    @Param('id', PathId('whe')) id: string,
    @Body() body?: RotateWebhookSecretDto,
  ): Promise<RenderedResponse> {
    const graceSeconds = body?.grace_seconds ?? DEFAULT_GRACE_SECONDS;
    return this.idempotent.execute(key, async (tx): Promise<IdempotentResponse> => {
      const of = await this.owned.endpointKey(caller, id, tx);
      caller.assertYoung();
      const { endpoint, secret } = await this.endpoints.rotateSecret(tx, by, of, graceSeconds);
      return {
        data: toRotatedSecretResponse(await this.show.of(endpoint, tx), secret),
        secretFields: ['secret'],
      };
    });
  }

  @IdempotentPost('rotate-secret/finish', {
    status: 200,
    response: WebhookEndpointResponse,
    summary: 'End the grace period of the old signing secret',
    description:
      'Deliveries carry the signature of the new secret only. Needs a session younger than 15 minutes.',
    refusals: ['step_up_required'],
  })
  @NeedsScope('webhooks:write')
  async finishRotation(
    @Author() by: ChangeAuthor,
    @Caller() caller: PortalPrincipal,
    @IdempotencyKeyParam() key: IdempotencyKey,
    @Param('id', PathId('whe')) id: string,
  ): Promise<RenderedResponse> {
    return this.idempotent.execute(key, async (tx) => {
      const of = await this.owned.endpointKey(caller, id, tx);
      caller.assertYoung();
      return this.ok(tx, await this.endpoints.finishRotation(tx, by, of));
    });
  }

  @IdempotentPost('test', {
    status: 202,
    response: WebhookDeliveryResponse,
    summary: 'Send a `webhook.test` once, without retries',
    description: 'Sends in the background. The delivery log shows the outcome.',
    refusals: ['conflict'],
  })
  @NeedsScope('webhooks:write')
  async sendTest(
    @Author() by: ChangeAuthor,
    @Caller() caller: PortalPrincipal,
    @IdempotencyKeyParam() key: IdempotencyKey,
    @Param('id', PathId('whe')) id: string,
  ): Promise<RenderedResponse> {
    await this.manual.take(caller);
    return this.idempotent.execute(key, async (tx) => ({
      data: toDeliveryResponse(await this.send.test(tx, by, await this.owned.endpointKey(caller, id, tx))),
    }));
  }

  private async ok(tx: Tx, endpoint: WebhookEndpointEntity): Promise<IdempotentResponse> {
    return { data: toEndpointResponse(await this.show.of(endpoint, tx)) };
  }
}
