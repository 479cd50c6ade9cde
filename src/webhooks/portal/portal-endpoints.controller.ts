import { Body, Controller, Delete, Get, Param, Patch, Query, UseGuards } from '@nestjs/common';
import { ApiTags } from '@nestjs/swagger';
import { Author, type ChangeAuthor } from '../../audit/index.js';
import { Caller, NeedsScope, PortalPrincipal, PortalSessionGuard } from '../../auth/index.js';
import type { Mode } from '../../common/mode.js';
import { Transactions } from '../../infra/database/index.js';
import { ListQueryDto, ListResponse, PathId, PortalMode, toListOptions } from '../../infra/http/index.js';
import { ApiRefusals, Responds, RespondsPage } from '../../infra/http/openapi/responds.js';
import {
  type IdempotencyKey,
  IdempotencyKeyParam,
  IdempotentExecutor,
  IdempotentPost,
  type IdempotentResponse,
  type RenderedResponse,
} from '../../infra/idempotency/index.js';
import {
  DEFAULT_STATS_WINDOW,
  EndpointStatsQueryDto,
  EndpointStatsResponse,
  toEndpointStatsResponse,
} from '../admin/endpoint-stats.dto.js';
import {
  CreateWebhookEndpointDto,
  toEndpointChange,
  toNewEndpointTerms,
  UpdateWebhookEndpointDto,
} from '../admin/webhook-endpoint-requests.dto.js';
import {
  CreatedWebhookEndpointResponse,
  DeletedWebhookEndpointResponse,
  toCreatedEndpointResponse,
  toEndpointPage,
  toEndpointResponse,
  WebhookEndpointResponse,
} from '../admin/webhook-endpoint.response.js';
import { EVENT_TYPES } from '../../events/index.js';
import { ShowEndpoints } from '../show-endpoints.js';
import { TargetPolicy } from '../target-policy.js';
import type { WebhookEndpointEntity } from '../webhook-endpoint.entity.js';
import type { EndpointChange } from '../webhook-endpoints.repository.js';
import { WebhookEndpointsService } from '../webhook-endpoints.service.js';
import { OwnedWebhooks } from './owned-webhooks.js';

export class PortalEndpointsQueryDto extends ListQueryDto {
  @PortalMode()
  mode!: Mode;
}

/**
 * Whether somebody else receives the endpoint's events, or its receiver some of them no longer. A receiver of other
 * people's events learns of their customers; one that misses a signature refuses every event.
 */
function takesAway(before: WebhookEndpointEntity, wanted: EndpointChange): boolean {
  const { url = before.url, eventTypes = before.eventTypes, signatureSchemes } = wanted;
  return (
    url !== before.url ||
    lacksAny(eventTypes ?? EVENT_TYPES, before.eventTypes ?? EVENT_TYPES) ||
    lacksAny(signatureSchemes ?? before.signatureSchemes, before.signatureSchemes)
  );
}

function lacksAny(wanted: readonly string[], before: readonly string[]): boolean {
  return before.some((each) => !wanted.includes(each));
}

/** Developers > Webhooks: a partner's endpoints (spec section 2). What a row's switch and buttons do is in the controller beside. */
@ApiTags('Webhook endpoints')
@UseGuards(PortalSessionGuard)
@Controller('portal/v1/webhook-endpoints')
export class PortalEndpointsController {
  constructor(
    private readonly owned: OwnedWebhooks,
    private readonly endpoints: WebhookEndpointsService,
    private readonly show: ShowEndpoints,
    private readonly targets: TargetPolicy,
    private readonly idempotent: IdempotentExecutor,
    private readonly transactions: Transactions,
  ) {}

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

  @IdempotentPost('/', {
    status: 201,
    response: CreatedWebhookEndpointResponse,
    summary: 'Create a webhook endpoint',
    description:
      'Only this answer shows the signing secret. A live endpoint needs a session younger than 15 minutes.',
    refusals: ['limit_reached', 'step_up_required'],
  })
  @NeedsScope('webhooks:write')
  async createEndpoint(
    @Author() by: ChangeAuthor,
    @Caller() caller: PortalPrincipal,
    @IdempotencyKeyParam() key: IdempotencyKey,
    @Body() body: CreateWebhookEndpointDto,
  ): Promise<RenderedResponse> {
    // What it receives is what a change of the URL would give away.
    if (caller.chosenMode(body.mode) === 'live') caller.assertYoung();
    this.targets.assertAllowed(body.url);
    const terms = toNewEndpointTerms(caller.partnerId, body);
    return this.idempotent.execute(key, async (tx): Promise<IdempotentResponse> => {
      const { endpoint, secret } = await this.endpoints.register(tx, by, terms);
      const data = toCreatedEndpointResponse(await this.show.of(endpoint, tx), secret);
      return { data, secretFields: ['secret'] };
    });
  }

  @Get(':id')
  @NeedsScope('webhooks:read')
  @Responds(WebhookEndpointResponse, {
    summary: 'Get a webhook endpoint',
    description: 'Returns the endpoint with its status, its backlog and its last success.',
  })
  async getEndpoint(
    @Caller() caller: PortalPrincipal,
    @Param('id', PathId('whe')) id: string,
  ): Promise<WebhookEndpointResponse> {
    return toEndpointResponse(await this.show.of(await this.owned.endpoint(caller, id)));
  }

  @Get(':id/stats')
  @NeedsScope('webhooks:read')
  @Responds(EndpointStatsResponse, {
    summary: 'Get the attempts of an endpoint over time',
    description: 'Returns delivered and failed attempts with their latency, in buckets of the window.',
  })
  async getEndpointStats(
    @Caller() caller: PortalPrincipal,
    @Param('id', PathId('whe')) id: string,
    @Query() query: EndpointStatsQueryDto,
  ): Promise<EndpointStatsResponse> {
    await this.owned.endpointEvenDeleted(caller, id);
    const window = query.window ?? DEFAULT_STATS_WINDOW;
    return toEndpointStatsResponse(window, await this.show.statsOf(id, window));
  }

  @Patch(':id')
  @NeedsScope('webhooks:write')
  @ApiRefusals('step_up_required')
  @Responds(WebhookEndpointResponse, {
    summary: 'Change the URL, the description or the event types',
    description: 'A change that takes events from a live endpoint needs a session younger than 15 minutes.',
  })
  async updateEndpoint(
    @Author() by: ChangeAuthor,
    @Caller() caller: PortalPrincipal,
    @Param('id', PathId('whe')) id: string,
    @Body() body: UpdateWebhookEndpointDto,
  ): Promise<WebhookEndpointResponse> {
    if (body.url !== undefined) this.targets.assertAllowed(body.url);
    const wanted = toEndpointChange(body);
    return this.transactions.run(async (tx) => {
      const before = await this.owned.endpoint(caller, id, tx);
      if (before.mode === 'live' && takesAway(before, wanted)) caller.assertYoung();
      const key = { partnerId: caller.partnerId, id };
      return toEndpointResponse(await this.show.of(await this.endpoints.update(tx, by, key, wanted), tx));
    });
  }

  @Delete(':id')
  @NeedsScope('webhooks:write')
  @ApiRefusals('step_up_required')
  @Responds(DeletedWebhookEndpointResponse, {
    summary: 'Delete a webhook endpoint',
    description:
      'Discards the deliveries that are pending or held. A live endpoint needs a session younger than 15 minutes.',
  })
  async deleteEndpoint(
    @Author() by: ChangeAuthor,
    @Caller() caller: PortalPrincipal,
    @Param('id', PathId('whe')) id: string,
  ): Promise<DeletedWebhookEndpointResponse> {
    await this.transactions.run(async (tx) => {
      const { mode } = await this.owned.endpoint(caller, id, tx);
      if (mode === 'live') caller.assertYoung();
      await this.endpoints.delete(tx, by, { partnerId: caller.partnerId, id });
    });
    return { id, deleted: true };
  }
}
