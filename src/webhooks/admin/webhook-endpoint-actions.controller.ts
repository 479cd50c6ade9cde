import { Body, Controller, HttpCode, Param, Post, UseGuards, UseInterceptors } from '@nestjs/common';
import { ApiTags } from '@nestjs/swagger';
import { Author, type ChangeAuthor } from '../../audit/index.js';
import { AdminTokenGuard } from '../../auth/index.js';
import { PathId } from '../../infra/http/index.js';
import { Responds, ApiRefusals } from '../../infra/http/openapi/index.js';
import {
  type IdempotentResponse,
  IdempotencyKeyParam,
  type IdempotencyKey,
  IdempotencyInterceptor,
  IdempotentExecutor,
  type RenderedResponse,
} from '../../infra/idempotency/index.js';
import { SendOnRequest } from '../send-on-request.js';
import type { WebhookEndpointEntity } from '../webhook-endpoint.entity.js';
import { WebhookEndpointsService } from '../webhook-endpoints.service.js';
import {
  DEFAULT_GRACE_SECONDS,
  EnableWebhookEndpointDto,
  RotateWebhookSecretDto,
} from './webhook-endpoint-requests.dto.js';
import { toDeliveryResponse, WebhookDeliveryResponse } from './webhook-delivery.response.js';
import {
  RotatedWebhookSecretResponse,
  toEndpointResponse,
  toRotatedSecretResponse,
  WebhookEndpointResponse,
} from './webhook-endpoint.response.js';

/** What the portal's endpoint row can do: the status switch, the secret, a test (D29, D32). */
@ApiTags('Webhook endpoints')
@UseGuards(AdminTokenGuard)
@UseInterceptors(IdempotencyInterceptor)
@Controller('internal/v1/partners/:pid/webhook-endpoints/:id')
export class WebhookEndpointActionsController {
  constructor(
    private readonly endpoints: WebhookEndpointsService,
    private readonly send: SendOnRequest,
    private readonly idempotent: IdempotentExecutor,
  ) {}

  @Post('enable')
  @Responds(WebhookEndpointResponse, {
    summary: 'Switch an endpoint on, and choose what becomes of what it missed',
  })
  @HttpCode(200)
  async enableEndpoint(
    @Author() by: ChangeAuthor,
    @IdempotencyKeyParam() key: IdempotencyKey,
    @Param('pid', PathId('ptn')) partnerId: string,
    @Param('id', PathId('whe')) id: string,
    @Body() body?: EnableWebhookEndpointDto,
  ): Promise<RenderedResponse> {
    const choice = { held: body?.held ?? 'release', failed: body?.failed ?? 'leave' };
    return this.idempotent.execute(key, async (tx) =>
      ok(await this.endpoints.enable(tx, by, { partnerId, id }, choice)),
    );
  }

  @Post('disable')
  @Responds(WebhookEndpointResponse, { summary: 'Switch an endpoint off; its deliveries are held' })
  @HttpCode(200)
  async disableEndpoint(
    @Author() by: ChangeAuthor,
    @IdempotencyKeyParam() key: IdempotencyKey,
    @Param('pid', PathId('ptn')) partnerId: string,
    @Param('id', PathId('whe')) id: string,
  ): Promise<RenderedResponse> {
    return this.idempotent.execute(key, async (tx) =>
      ok(await this.endpoints.disable(tx, by, { partnerId, id })),
    );
  }

  @Post('rotate-secret')
  @Responds(RotatedWebhookSecretResponse, {
    summary: 'Make a new signing secret; the old one signs too for a grace',
  })
  @HttpCode(200)
  async rotateSecret(
    @Author() by: ChangeAuthor,
    @IdempotencyKeyParam() key: IdempotencyKey,
    @Param('pid', PathId('ptn')) partnerId: string,
    @Param('id', PathId('whe')) id: string,
    @Body() body?: RotateWebhookSecretDto,
  ): Promise<RenderedResponse> {
    const graceSeconds = body?.grace_seconds ?? DEFAULT_GRACE_SECONDS;
    return this.idempotent.execute(key, async (tx) => {
      const { endpoint, secret } = await this.endpoints.rotateSecret(tx, by, { partnerId, id }, graceSeconds);
      return { data: toRotatedSecretResponse(endpoint, secret), secretFields: ['secret'] };
    });
  }

  @Post('rotate-secret/finish')
  @Responds(WebhookEndpointResponse, { summary: 'End the grace of the old signing secret now' })
  @HttpCode(200)
  async finishRotation(
    @Author() by: ChangeAuthor,
    @IdempotencyKeyParam() key: IdempotencyKey,
    @Param('pid', PathId('ptn')) partnerId: string,
    @Param('id', PathId('whe')) id: string,
  ): Promise<RenderedResponse> {
    return this.idempotent.execute(key, async (tx) =>
      ok(await this.endpoints.finishRotation(tx, by, { partnerId, id })),
    );
  }

  @Post('test')
  @Responds(WebhookDeliveryResponse, { status: 202, summary: 'Send a `webhook.test` once, without retries' })
  @ApiRefusals('conflict')
  @HttpCode(202)
  async sendTest(
    @Author() by: ChangeAuthor,
    @IdempotencyKeyParam() key: IdempotencyKey,
    @Param('pid', PathId('ptn')) partnerId: string,
    @Param('id', PathId('whe')) id: string,
  ): Promise<RenderedResponse> {
    return this.idempotent.execute(key, async (tx) => ({
      data: toDeliveryResponse(await this.send.test(tx, by, { partnerId, id })),
    }));
  }
}

function ok(endpoint: WebhookEndpointEntity): IdempotentResponse {
  return { data: toEndpointResponse(endpoint) };
}
