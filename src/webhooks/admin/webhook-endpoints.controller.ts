import { Body, Controller, Delete, Get, Injectable, Param, Patch, Query, UseGuards } from '@nestjs/common';
import { ApiTags } from '@nestjs/swagger';
import { Author, type ChangeAuthor } from '../../audit/index.js';
import {
  type AdminOrPortalPrincipal,
  AdminTokenGuard,
  Caller,
  NeedsScope,
  PartnerId,
  PortalPrincipal,
  PortalSessionGuard,
} from '../../auth/index.js';
import type { Mode } from '../../common/mode.js';
import { Transactions, type Tx } from '../../infra/database/index.js';
import { ListQueryDto, ListResponse, PathId, PortalMode, toListOptions } from '../../infra/http/index.js';
import { ApiRefusals, Responds, RespondsPage } from '../../infra/http/openapi/responds.js';
import {
  IdempotencyKeyParam,
  type IdempotencyKey,
  IdempotentExecutor,
  IdempotentPost,
  type IdempotentResponse,
  type RenderedResponse,
} from '../../infra/idempotency/index.js';
import { ExistingPartner } from '../../partners/index.js';
import { ManualSends } from '../manual-sends.js';
import { OwnedWebhooks } from '../owned-webhooks.js';
import { SendOnRequest } from '../send-on-request.js';
import { ShowEndpoints } from '../show-endpoints.js';
import { TargetPolicy } from '../target-policy.js';
import type { WebhookEndpointEntity } from '../webhook-endpoint.entity.js';
import { takesAway, WebhookEndpointsService } from '../webhook-endpoints.service.js';
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

export class PortalEndpointsQueryDto extends ListQueryDto {
  @PortalMode()
  mode?: Mode | null;
}

/** A partner's webhook endpoints: the status switch, the secret, a test (D29, D32). */
@Injectable()
abstract class EndpointHandlers {
  constructor(
    protected readonly show: ShowEndpoints,
    private readonly owned: OwnedWebhooks,
    private readonly endpoints: WebhookEndpointsService,
    private readonly send: SendOnRequest,
    private readonly targets: TargetPolicy,
    private readonly idempotent: IdempotentExecutor,
    private readonly transactions: Transactions,
    private readonly manual: ManualSends,
  ) {}

  @IdempotentPost('/', {
    status: 201,
    response: CreatedWebhookEndpointResponse,
    summary: 'Create a webhook endpoint',
    description: 'Only this response shows the signing secret.',
    on: {
      portal: {
        description:
          'Only this response shows the signing secret. A live endpoint needs a session younger than 15 minutes.',
      },
    },
    location: true,
    refusals: ['limit_reached', 'step_up_required'],
  })
  @NeedsScope('webhooks:write')
  async createEndpoint(
    @Author() by: ChangeAuthor,
    @Caller() caller: AdminOrPortalPrincipal,
    @IdempotencyKeyParam() key: IdempotencyKey,
    @PartnerId() partnerId: string,
    @Body() body: CreateWebhookEndpointDto,
  ): Promise<RenderedResponse> {
    // A new endpoint exposes the same events as a changed URL.
    if (caller.chosenMode(body.mode) === 'live') caller.assertYoung();
    this.targets.assertAllowed(body.url);
    const terms = toNewEndpointTerms(partnerId, body);
    return this.idempotent.execute(key, async (tx) => {
      const { endpoint, secret } = await this.endpoints.register(tx, by, terms);
      return {
        data: toCreatedEndpointResponse(await this.show.of(endpoint, tx), secret),
        ...caller.locationOf(`partners/${partnerId}/webhook-endpoints/${endpoint.id}`),
        secretFields: ['secret'],
      };
    });
  }

  @Get(':id')
  @Responds(WebhookEndpointResponse, {
    summary: 'Get a webhook endpoint',
    description: 'Returns the endpoint with its status, its backlog and its last success.',
  })
  @NeedsScope('webhooks:read')
  async getEndpoint(
    @Caller() caller: AdminOrPortalPrincipal,
    @PartnerId() partnerId: string,
    @Param('id', PathId('whe')) id: string,
  ): Promise<WebhookEndpointResponse> {
    return toEndpointResponse(await this.show.of(await this.owned.endpoint(caller, { partnerId, id })));
  }

  @Patch(':id')
  @ApiRefusals('step_up_required')
  @Responds(WebhookEndpointResponse, {
    summary: 'Change the URL, the description or the event types',
    description: 'Changes the fields that are sent and keeps the others.',
    on: {
      portal: {
        description:
          'A change that removes events from a live endpoint needs a session younger than 15 minutes.',
      },
    },
  })
  @NeedsScope('webhooks:write')
  async updateEndpoint(
    @Author() by: ChangeAuthor,
    @Caller() caller: AdminOrPortalPrincipal,
    @PartnerId() partnerId: string,
    @Param('id', PathId('whe')) id: string,
    @Body() body: UpdateWebhookEndpointDto,
  ): Promise<WebhookEndpointResponse> {
    if (body.url !== undefined) this.targets.assertAllowed(body.url);
    const wanted = toEndpointChange(body);
    return this.transactions.run(async (tx) => {
      const before = await this.owned.endpoint(caller, { partnerId, id }, tx);
      if (before.mode === 'live' && takesAway(before, wanted)) caller.assertYoung();
      const changed = await this.endpoints.update(tx, by, { partnerId, id }, wanted);
      return toEndpointResponse(await this.show.of(changed, tx));
    });
  }

  @Delete(':id')
  @ApiRefusals('step_up_required')
  @Responds(DeletedWebhookEndpointResponse, {
    summary: 'Delete a webhook endpoint',
    description: 'Discards the pending and held deliveries. This cannot be undone.',
    on: {
      portal: {
        description:
          'Discards the pending and held deliveries. A live endpoint needs a session younger than 15 minutes.',
      },
    },
  })
  @NeedsScope('webhooks:write')
  async deleteEndpoint(
    @Author() by: ChangeAuthor,
    @Caller() caller: AdminOrPortalPrincipal,
    @PartnerId() partnerId: string,
    @Param('id', PathId('whe')) id: string,
  ): Promise<DeletedWebhookEndpointResponse> {
    await this.transactions.run(async (tx) => {
      const { mode } = await this.owned.endpoint(caller, { partnerId, id }, tx);
      if (mode === 'live') caller.assertYoung();
      await this.endpoints.delete(tx, by, { partnerId, id });
    });
    return { id, deleted: true };
  }

  @IdempotentPost(':id/enable', {
    status: 200,
    response: WebhookEndpointResponse,
    summary: 'Enable a webhook endpoint',
    description:
      '`held` sends or discards the deliveries held while the endpoint was disabled. `failed` resends or leaves those that failed since its last success.',
    on: {
      portal: {
        description:
          'Resending failed deliveries, or discarding held ones, needs a session younger than 15 minutes.',
      },
    },
    refusals: ['step_up_required'],
  })
  @NeedsScope('webhooks:write')
  async enableEndpoint(
    @Author() by: ChangeAuthor,
    @Caller() caller: AdminOrPortalPrincipal,
    @IdempotencyKeyParam() key: IdempotencyKey,
    @PartnerId() partnerId: string,
    @Param('id', PathId('whe')) id: string,
    @Body() body?: EnableWebhookEndpointDto,
  ): Promise<RenderedResponse> {
    const choice = { held: body?.held ?? 'release', failed: body?.failed ?? 'leave' };
    // A resend or discard of any size requires a recent session.
    if (choice.failed === 'resend' || choice.held === 'discard') caller.assertYoung();
    return this.idempotent.execute(key, async (tx) => {
      await this.owned.endpoint(caller, { partnerId, id }, tx);
      return this.ok(tx, await this.endpoints.enable(tx, by, { partnerId, id }, choice));
    });
  }

  @IdempotentPost(':id/disable', {
    status: 200,
    response: WebhookEndpointResponse,
    summary: 'Disable a webhook endpoint',
    description: 'Stops sending. New deliveries are held until the endpoint is enabled.',
    on: {
      portal: {
        description:
          'Stops sending. New deliveries are held until the endpoint is enabled. A live endpoint needs a session younger than 15 minutes.',
      },
    },
    refusals: ['step_up_required'],
  })
  @NeedsScope('webhooks:write')
  async disableEndpoint(
    @Author() by: ChangeAuthor,
    @Caller() caller: AdminOrPortalPrincipal,
    @IdempotencyKeyParam() key: IdempotencyKey,
    @PartnerId() partnerId: string,
    @Param('id', PathId('whe')) id: string,
  ): Promise<RenderedResponse> {
    return this.idempotent.execute(key, async (tx) => {
      // Until somebody notices, the partner's systems receive nothing.
      if ((await this.owned.endpoint(caller, { partnerId, id }, tx)).mode === 'live') caller.assertYoung();
      return this.ok(tx, await this.endpoints.disable(tx, by, { partnerId, id }));
    });
  }

  @IdempotentPost(':id/rotate-secret', {
    status: 200,
    response: RotatedWebhookSecretResponse,
    summary: 'Rotate the signing secret',
    description:
      'Returns the new secret, which only this response shows. The old secret also signs for `grace_seconds`.',
    on: {
      portal: {
        description:
          'Only this response shows the new secret. The old secret also signs for `grace_seconds`. Needs a session younger than 15 minutes.',
      },
    },
    refusals: ['step_up_required'],
  })
  @NeedsScope('webhooks:write')
  async rotateSecret(
    @Author() by: ChangeAuthor,
    @Caller() caller: AdminOrPortalPrincipal,
    @IdempotencyKeyParam() key: IdempotencyKey,
    @PartnerId() partnerId: string,
    @Param('id', PathId('whe')) id: string,
    @Body() body?: RotateWebhookSecretDto,
  ): Promise<RenderedResponse> {
    const graceSeconds = body?.grace_seconds ?? DEFAULT_GRACE_SECONDS;
    return this.idempotent.execute(key, async (tx) => {
      await this.owned.endpoint(caller, { partnerId, id }, tx);
      caller.assertYoung();
      const { endpoint, secret } = await this.endpoints.rotateSecret(tx, by, { partnerId, id }, graceSeconds);
      const shown = await this.show.of(endpoint, tx);
      return { data: toRotatedSecretResponse(shown, secret), secretFields: ['secret'] };
    });
  }

  @IdempotentPost(':id/rotate-secret/finish', {
    status: 200,
    response: WebhookEndpointResponse,
    summary: 'End the grace period of the old signing secret',
    description: 'From the next delivery on, only the new secret signs.',
    on: {
      portal: {
        description:
          'From the next delivery on, only the new secret signs. Needs a session younger than 15 minutes.',
      },
    },
    refusals: ['step_up_required'],
  })
  @NeedsScope('webhooks:write')
  async finishRotation(
    @Author() by: ChangeAuthor,
    @Caller() caller: AdminOrPortalPrincipal,
    @IdempotencyKeyParam() key: IdempotencyKey,
    @PartnerId() partnerId: string,
    @Param('id', PathId('whe')) id: string,
  ): Promise<RenderedResponse> {
    return this.idempotent.execute(key, async (tx) => {
      await this.owned.endpoint(caller, { partnerId, id }, tx);
      caller.assertYoung();
      return this.ok(tx, await this.endpoints.finishRotation(tx, by, { partnerId, id }));
    });
  }

  @IdempotentPost(':id/test', {
    status: 202,
    response: WebhookDeliveryResponse,
    summary: 'Send a `webhook.test` once, without retries',
    description: 'Sends the test event in the background. The delivery log shows the outcome.',
    refusals: ['conflict'],
  })
  @NeedsScope('webhooks:write')
  async sendTest(
    @Author() by: ChangeAuthor,
    @Caller() caller: AdminOrPortalPrincipal,
    @IdempotencyKeyParam() key: IdempotencyKey,
    @PartnerId() partnerId: string,
    @Param('id', PathId('whe')) id: string,
  ): Promise<RenderedResponse> {
    await this.manual.take(caller);
    return this.idempotent.execute(key, async (tx) => {
      await this.owned.endpoint(caller, { partnerId, id }, tx);
      return { data: toDeliveryResponse(await this.send.test(tx, by, { partnerId, id })) };
    });
  }

  private async ok(tx: Tx, endpoint: WebhookEndpointEntity): Promise<IdempotentResponse> {
    return { data: toEndpointResponse(await this.show.of(endpoint, tx)) };
  }
}

@ApiTags('Webhook endpoints')
@UseGuards(AdminTokenGuard)
@Controller('internal/v1/partners/:pid/webhook-endpoints')
export class WebhookEndpointsController extends EndpointHandlers {
  @Get()
  @RespondsPage(WebhookEndpointResponse, {
    summary: "List a partner's webhook endpoints, newest first",
    description: 'Returns the endpoints of both modes with their status.',
  })
  @NeedsScope('webhooks:read')
  async listEndpoints(
    @Param('pid', ExistingPartner) partnerId: string,
    @Query() query: ListQueryDto,
  ): Promise<ListResponse<WebhookEndpointResponse>> {
    return new ListResponse(toEndpointPage(await this.show.list({ partnerId }, toListOptions(query))));
  }
}

@ApiTags('Webhook endpoints')
@UseGuards(PortalSessionGuard)
@Controller('portal/v1/webhook-endpoints')
export class PortalEndpointsController extends EndpointHandlers {
  @Get()
  @NeedsScope('webhooks:read')
  @RespondsPage(WebhookEndpointResponse, {
    summary: 'List the webhook endpoints of a mode, newest first',
    description: 'Returns the endpoints with their status.',
  })
  async listEndpoints(
    @Caller() caller: PortalPrincipal,
    @Query() query: PortalEndpointsQueryDto,
  ): Promise<ListResponse<WebhookEndpointResponse>> {
    return new ListResponse(toEndpointPage(await this.show.list(caller.inMode(query), toListOptions(query))));
  }
}
