import {
  Body,
  Controller,
  Delete,
  Get,
  Param,
  Patch,
  Post,
  Query,
  UseGuards,
  UseInterceptors,
} from '@nestjs/common';
import { ApiTags } from '@nestjs/swagger';
import { Author, type ChangeAuthor } from '../../audit/index.js';
import { AdminTokenGuard } from '../../auth/index.js';
import { mapPage } from '../../common/page.js';
import { Transactions } from '../../infra/database/index.js';
import { ListResponse, ListQueryDto, PathId, toListOptions } from '../../infra/http/index.js';
import { Responds, RespondsPage, ApiRefusals } from '../../infra/http/openapi/index.js';
import {
  IdempotencyKeyParam,
  type IdempotencyKey,
  IdempotencyInterceptor,
  IdempotentExecutor,
  type RenderedResponse,
} from '../../infra/idempotency/index.js';
import { PartnersService } from '../../partners/index.js';
import { TargetPolicy } from '../target-policy.js';
import { WebhookEndpointsRepository } from '../webhook-endpoints.repository.js';
import { WebhookEndpointsService } from '../webhook-endpoints.service.js';
import {
  CreateWebhookEndpointDto,
  toEndpointChange,
  toNewEndpointTerms,
  UpdateWebhookEndpointDto,
} from './webhook-endpoint-requests.dto.js';
import {
  CreatedWebhookEndpointResponse,
  DeletedWebhookEndpointResponse,
  toCreatedEndpointResponse,
  toEndpointResponse,
  WebhookEndpointResponse,
} from './webhook-endpoint.response.js';

/** A partner's webhook endpoints (spec section 2). */
@ApiTags('Webhook endpoints')
@UseGuards(AdminTokenGuard)
@Controller('internal/v1/partners/:pid/webhook-endpoints')
export class WebhookEndpointsController {
  constructor(
    private readonly endpoints: WebhookEndpointsService,
    private readonly lists: WebhookEndpointsRepository,
    private readonly targets: TargetPolicy,
    private readonly partners: PartnersService,
    private readonly idempotent: IdempotentExecutor,
    private readonly transactions: Transactions,
  ) {}

  @Post()
  @Responds(CreatedWebhookEndpointResponse, {
    status: 201,
    summary: 'Register a webhook endpoint; the signing secret is shown in this answer only',
    location: true,
  })
  @ApiRefusals('limit_reached')
  @UseInterceptors(IdempotencyInterceptor)
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
        data: toCreatedEndpointResponse(endpoint, secret),
        location: `/internal/v1/partners/${partnerId}/webhook-endpoints/${endpoint.id}`,
        secretFields: ['secret'],
      };
    });
  }

  @Get()
  @RespondsPage(WebhookEndpointResponse, { summary: "List a partner's webhook endpoints, newest first" })
  async listEndpoints(
    @Param('pid', PathId('ptn')) partnerId: string,
    @Query() query: ListQueryDto,
  ): Promise<ListResponse<WebhookEndpointResponse>> {
    await this.partners.getById(partnerId);
    const page = await this.lists.listOfPartner(partnerId, toListOptions(query));
    return new ListResponse(mapPage(page, toEndpointResponse));
  }

  @Get(':id')
  @Responds(WebhookEndpointResponse, { summary: 'Get a webhook endpoint' })
  async getEndpoint(
    @Param('pid', PathId('ptn')) partnerId: string,
    @Param('id', PathId('whe')) id: string,
  ): Promise<WebhookEndpointResponse> {
    return toEndpointResponse(await this.endpoints.getById({ partnerId, id }));
  }

  @Patch(':id')
  @Responds(WebhookEndpointResponse, { summary: 'Change the URL, the description or the event types' })
  async updateEndpoint(
    @Author() by: ChangeAuthor,
    @Param('pid', PathId('ptn')) partnerId: string,
    @Param('id', PathId('whe')) id: string,
    @Body() body: UpdateWebhookEndpointDto,
  ): Promise<WebhookEndpointResponse> {
    if (body.url !== undefined) this.targets.assertAllowed(body.url);
    const wanted = toEndpointChange(body);
    return toEndpointResponse(
      await this.transactions.run((tx) => this.endpoints.update(tx, by, { partnerId, id }, wanted)),
    );
  }

  @Delete(':id')
  @Responds(DeletedWebhookEndpointResponse, {
    summary: 'Delete a webhook endpoint and discard what it is owed',
  })
  async deleteEndpoint(
    @Author() by: ChangeAuthor,
    @Param('pid', PathId('ptn')) partnerId: string,
    @Param('id', PathId('whe')) id: string,
  ): Promise<DeletedWebhookEndpointResponse> {
    await this.transactions.run((tx) => this.endpoints.delete(tx, by, { partnerId, id }));
    return { id, deleted: true };
  }
}
