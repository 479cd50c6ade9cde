import { Body, Controller, Get, Param, Patch, Query, UseGuards } from '@nestjs/common';
import { ApiTags } from '@nestjs/swagger';
import { Author, type ChangeAuthor } from '../../audit/index.js';
import { AdminTokenGuard, NeedsScope } from '../../auth/index.js';
import { mapPage } from '../../common/page.js';
import { Transactions } from '../../infra/database/index.js';
import { ListResponse, PathId, toListOptions } from '../../infra/http/index.js';
import { Responds, RespondsPage } from '../../infra/http/openapi/responds.js';
import {
  type IdempotentResponse,
  IdempotencyKeyParam,
  type IdempotencyKey,
  IdempotentExecutor,
  IdempotentPost,
  type RenderedResponse,
} from '../../infra/idempotency/index.js';
import { type PartnerEntity, PartnersRepository } from '../partners.repository.js';
import { PartnersService } from '../partners.service.js';
import {
  CreatePartnerDto,
  PartnerResponse,
  PartnersQueryDto,
  toPartnerChanges,
  toPartnerResponse,
  UpdatePartnerDto,
} from './partners.dto.js';

/** The portal team's administration of partners (D3). */
@ApiTags('Partners')
@UseGuards(AdminTokenGuard)
@Controller('internal/v1/partners')
export class PartnersController {
  constructor(
    private readonly partners: PartnersService,
    private readonly repository: PartnersRepository,
    private readonly idempotent: IdempotentExecutor,
    private readonly transactions: Transactions,
  ) {}

  @IdempotentPost('/', {
    status: 201,
    response: PartnerResponse,
    summary: 'Create a partner',
    description: 'Creates a partner without keys, endpoints or money.',
    location: true,
  })
  @NeedsScope('partners:write')
  async createPartner(
    @Author() by: ChangeAuthor,
    @IdempotencyKeyParam() key: IdempotencyKey,
    @Body() { name, email }: CreatePartnerDto,
  ): Promise<RenderedResponse> {
    return this.idempotent.execute(key, async (tx) => {
      const partner = await this.partners.create(tx, by, { name, email: email ?? null });
      return { ...ok(partner), status: 201, location: `/internal/v1/partners/${partner.id}` };
    });
  }

  @Get()
  @RespondsPage(PartnerResponse, {
    summary: 'List partners, newest first',
    description: 'Returns every partner, including suspended ones.',
  })
  @NeedsScope('partners:read')
  async listPartners(@Query() query: PartnersQueryDto): Promise<ListResponse<PartnerResponse>> {
    const page = await this.repository.list({ status: query.status }, toListOptions(query));
    return new ListResponse(mapPage(page, toPartnerResponse));
  }

  @Get(':pid')
  @Responds(PartnerResponse, {
    summary: 'Get a partner',
    description: 'Returns the partner with its name, e-mail address and status.',
  })
  @NeedsScope('partners:read')
  async getPartner(@Param('pid', PathId('ptn')) id: string): Promise<PartnerResponse> {
    return toPartnerResponse(await this.partners.getById(id));
  }

  @Patch(':pid')
  @Responds(PartnerResponse, {
    summary: 'Change the name or the e-mail address of a partner',
    description: 'Changes the fields that are sent and keeps the others.',
  })
  @NeedsScope('partners:write')
  async updatePartner(
    @Author() by: ChangeAuthor,
    @Param('pid', PathId('ptn')) id: string,
    @Body() body: UpdatePartnerDto,
  ): Promise<PartnerResponse> {
    const changes = toPartnerChanges(body);
    return toPartnerResponse(await this.transactions.run((tx) => this.partners.update(tx, by, id, changes)));
  }

  @IdempotentPost(':pid/suspend', {
    status: 200,
    response: PartnerResponse,
    summary: 'Suspend a partner',
    description:
      "The partner's next call gets 403 `partner_suspended`. Accepted orders and pending webhooks continue.",
  })
  @NeedsScope('partners:write')
  async suspendPartner(
    @Author() by: ChangeAuthor,
    @IdempotencyKeyParam() key: IdempotencyKey,
    @Param('pid', PathId('ptn')) id: string,
  ): Promise<RenderedResponse> {
    return this.idempotent.execute(key, async (tx) => ok(await this.partners.suspend(tx, by, id)));
  }

  @IdempotentPost(':pid/reinstate', {
    status: 200,
    response: PartnerResponse,
    summary: 'End the suspension of a partner',
    description: "The partner's next call works again.",
  })
  @NeedsScope('partners:write')
  async reinstatePartner(
    @Author() by: ChangeAuthor,
    @IdempotencyKeyParam() key: IdempotencyKey,
    @Param('pid', PathId('ptn')) id: string,
  ): Promise<RenderedResponse> {
    return this.idempotent.execute(key, async (tx) => ok(await this.partners.reinstate(tx, by, id)));
  }
}

function ok(partner: PartnerEntity): IdempotentResponse {
  return { data: toPartnerResponse(partner) };
}
