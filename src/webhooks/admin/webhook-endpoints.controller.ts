import { Body, Controller, Delete, Get, Param, Patch, Query, UseGuards } from '@nestjs/common';
import { ApiTags } from '@nestjs/swagger';
import { Author, type ChangeAuthor } from '../../audit/index.js';
import { AdminTokenGuard, NeedsScope } from '../../auth/index.js';
import { Transactions, type Tx } from '../../infra/database/index.js';
import { ListResponse, ListQueryDto, PathId, toListOptions } from '../../infra/http/index.js';
import { Responds, RespondsPage } from '../../infra/http/openapi/responds.js';
import {
  IdempotencyKeyParam,
  type IdempotencyKey,
  IdempotentExecutor,
  IdempotentPost,
  type IdempotentResponse,
  type RenderedResponse,
} from '../../infra/idempotency/index.js';
import { PartnersService } from '../../partners/index.js';
import { ShowEndpoints } from '../show-endpoints.js';
import { SendOnRequest } from '../send-on-request.js';
import { TargetPolicy } from '../target-policy.js';
import type { WebhookEndpointEntity } from '../webhook-endpoint.entity.js';
import { WebhookEndpointsService } from '../webhook-endpoints.service.js';
import {
  CreateWebhookEndpointDto,
  DEFAULT_GRACE_SECONDS,
  EnableWebhookEndpointDto,
  RotateWebhookSecretDto,
  toEndpointChange,
  toNewEndpointTerms,
  UpdateWebhookEndpointDto,
} from './webhook-endpoint-requests.dto.js';
import { toDeliveryResponse, WebhookDeliveryResponse } from './webhook-delivery.response.js';
import {
  CreatedWebhookEndpointResponse,
  DeletedWebhookEndpointResponse,
  RotatedWebhookSecretResponse,
  toCreatedEndpointResponse,
  toEndpointPage,
  toEndpointResponse,
  toRotatedSecretResponse,
  WebhookEndpointResponse,
} from './webhook-endpoint.response.js';

/** A partner's webhook endpoints, and what a row of the portal can do: the status switch, the secret, a test (D29, D32). */
@ApiTags('Webhook endpoints')
@UseGuards(AdminTokenGuard)
@Controller('internal/v1/partners/:pid/webhook-endpoints')
export class WebhookEndpointsController {
  constructor(
    private readonly endpoints: WebhookEndpointsService,
    private readonly show: ShowEndpoints,
    private readonly send: SendOnRequest,
    private readonly targets: TargetPolicy,
    private readonly partners: PartnersService,
    private readonly idempotent: IdempotentExecutor,
    private readonly transactions: Transactions,
  ) {}

  @IdempotentPost('/', {
    status: 201,
    response: CreatedWebhookEndpointResponse,
    summary: 'Create a webhook endpoint',
    description: 'Only this answer shows the signing secret.',
    location: true,
    refusals: ['limit_reached'],
  })
  @NeedsScope('webhooks:write')
  async createEndpoint(
    @Author() by: ChangeAuthor,
    @IdempotencyKeyParam() key: IdempotencyKey,
    @Param('pid', PathId('ptn')) partnerId: string,
    @Body() body: CreateWebhookEndpointDto,
  ): Promise<RenderedResponse> {
    this.targets.assertAllowed(body.url);
    const terms = toNewEndpointTerms(partnerId, body);
    return this.idempotent.execute(key, async (tx) => {
      const { endpoint, secret } = await this.endpoints.register(tx, by, terms);
      return {
        data: toCreatedEndpointResponse(await this.show.of(endpoint, tx), secret),
        location: `/internal/v1/partners/${partnerId}/webhook-endpoints/${endpoint.id}`,
        secretFields: ['secret'],
      };
    });
  }

  @Get()
  @RespondsPage(WebhookEndpointResponse, {
    summary: "List a partner's webhook endpoints, newest first",
    description: 'Returns the endpoints of both modes with their status.',
  })
  @NeedsScope('webhooks:read')
  async listEndpoints(
    @Param('pid', PathId('ptn')) partnerId: string,
    @Query() query: ListQueryDto,
  ): Promise<ListResponse<WebhookEndpointResponse>> {
    await this.partners.getById(partnerId);
    return new ListResponse(toEndpointPage(await this.show.list({ partnerId }, toListOptions(query))));
  }

  @Get(':id')
  @Responds(WebhookEndpointResponse, {
    summary: 'Get a webhook endpoint',
    description: 'Returns the endpoint with its status, its backlog and its last success.',
  })
  @NeedsScope('webhooks:read')
  async getEndpoint(
    @Param('pid', PathId('ptn')) partnerId: string,
    @Param('id', PathId('whe')) id: string,
  ): Promise<WebhookEndpointResponse> {
    return toEndpointResponse(await this.show.of(await this.endpoints.getById({ partnerId, id })));
  }

  @Patch(':id')
  @Responds(WebhookEndpointResponse, {
    summary: 'Change the URL, the description or the event types',
    description: 'Changes the fields that are sent and keeps the others.',
  })
  @NeedsScope('webhooks:write')
  async updateEndpoint(
    @Author() by: ChangeAuthor,
    @Param('pid', PathId('ptn')) partnerId: string,
    @Param('id', PathId('whe')) id: string,
    @Body() body: UpdateWebhookEndpointDto,
  ): Promise<WebhookEndpointResponse> {
    if (body.url !== undefined) this.targets.assertAllowed(body.url);
    const wanted = toEndpointChange(body);
    return this.transactions.run(async (tx) =>
      toEndpointResponse(
        await this.show.of(await this.endpoints.update(tx, by, { partnerId, id }, wanted), tx),
      ),
    );
  }

  @Delete(':id')
  @Responds(DeletedWebhookEndpointResponse, {
    summary: 'Delete a webhook endpoint',
    description: 'Discards the deliveries that are pending or held. This cannot be undone.',
  })
  @NeedsScope('webhooks:write')
  async deleteEndpoint(
    @Author() by: ChangeAuthor,
    @Param('pid', PathId('ptn')) partnerId: string,
    @Param('id', PathId('whe')) id: string,
  ): Promise<DeletedWebhookEndpointResponse> {
    await this.transactions.run((tx) => this.endpoints.delete(tx, by, { partnerId, id }));
    return { id, deleted: true };
  }

  @IdempotentPost(':id/enable', {
    status: 200,
    response: WebhookEndpointResponse,
    summary: 'Enable a webhook endpoint',
    description:
      '`held` decides about the deliveries held while it was off, `failed` about those that failed since its last success.',
  })
  @NeedsScope('webhooks:write')
  async enableEndpoint(
    @Author() by: ChangeAuthor,
    @IdempotencyKeyParam() key: IdempotencyKey,
    @Param('pid', PathId('ptn')) partnerId: string,
    @Param('id', PathId('whe')) id: string,
    @Body() body?: EnableWebhookEndpointDto,
  ): Promise<RenderedResponse> {
    const choice = { held: body?.held ?? 'release', failed: body?.failed ?? 'leave' };
    return this.idempotent.execute(key, async (tx) =>
      this.ok(tx, await this.endpoints.enable(tx, by, { partnerId, id }, choice)),
    );
  }

  @IdempotentPost(':id/disable', {
    status: 200,
    response: WebhookEndpointResponse,
    summary: 'Disable a webhook endpoint',
    description: 'Stops sending. New deliveries are held until the endpoint is enabled.',
  })
  @NeedsScope('webhooks:write')
  async disableEndpoint(
    @Author() by: ChangeAuthor,
    @IdempotencyKeyParam() key: IdempotencyKey,
    @Param('pid', PathId('ptn')) partnerId: string,
    @Param('id', PathId('whe')) id: string,
  ): Promise<RenderedResponse> {
    return this.idempotent.execute(key, async (tx) =>
      this.ok(tx, await this.endpoints.disable(tx, by, { partnerId, id })),
    );
  }

  @IdempotentPost(':id/rotate-secret', {
    status: 200,
    response: RotatedWebhookSecretResponse,
    summary: 'Rotate the signing secret',
    description:
      'Returns the new secret, which only this answer shows. The old secret signs as well for `grace_seconds`.',
  })
  @NeedsScope('webhooks:write')
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
      const shown = await this.show.of(endpoint, tx);
      return { data: toRotatedSecretResponse(shown, secret), secretFields: ['secret'] };
    });
  }

  @IdempotentPost(':id/rotate-secret/finish', {
    status: 200,
    response: WebhookEndpointResponse,
    summary: 'End the grace period of the old signing secret',
    description: 'Deliveries carry the signature of the new secret only, from the next one on.',
  })
  @NeedsScope('webhooks:write')
  async finishRotation(
    @Author() by: ChangeAuthor,
    @IdempotencyKeyParam() key: IdempotencyKey,
    @Param('pid', PathId('ptn')) partnerId: string,
    @Param('id', PathId('whe')) id: string,
  ): Promise<RenderedResponse> {
    return this.idempotent.execute(key, async (tx) =>
      this.ok(tx, await this.endpoints.finishRotation(tx, by, { partnerId, id })),
    );
  }

  @IdempotentPost(':id/test', {
    status: 202,
    response: WebhookDeliveryResponse,
    summary: 'Send a `webhook.test` once, without retries',
    description: 'Sends in the background. The delivery log shows the outcome.',
    refusals: ['conflict'],
  })
  @NeedsScope('webhooks:write')
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

  private async ok(tx: Tx, endpoint: WebhookEndpointEntity): Promise<IdempotentResponse> {
    return { data: toEndpointResponse(await this.show.of(endpoint, tx)) };
  }
}
