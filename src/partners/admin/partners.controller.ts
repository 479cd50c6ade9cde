import {
  Body,
  Controller,
  Get,
  HttpCode,
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
import { ListAnswer, PathId, toListOptions } from '../../infra/http/index.js';
import { Answers, AnswersPage } from '../../infra/http/openapi/index.js';
import {
  type Answer,
  Idempotent,
  type IdempotentCall,
  IdempotencyInterceptor,
  OnceOnly,
  type RenderedAnswer,
} from '../../infra/idempotency/index.js';
import { ChangePartnerStatus } from '../change-partner-status.js';
import { CreatePartner } from '../create-partner.js';
import { FindPartner } from '../find-partner.js';
import type { PartnerEntity } from '../partner.entity.js';
import { PartnersRepository } from '../partners.repository.js';
import { UpdatePartner } from '../update-partner.js';
import {
  CreatePartnerDto,
  PartnersQueryDto,
  toPartnerChanges,
  UpdatePartnerDto,
} from './partner-requests.dto.js';
import { PartnerResponse, toPartnerResponse } from './partner.response.js';

/** The portal team's administration of partners (D3). */
@ApiTags('Partners')
@UseGuards(AdminTokenGuard)
@Controller('internal/v1/partners')
export class PartnersController {
  constructor(
    private readonly create: CreatePartner,
    private readonly update: UpdatePartner,
    private readonly status: ChangePartnerStatus,
    private readonly find: FindPartner,
    private readonly partners: PartnersRepository,
    private readonly onceOnly: OnceOnly,
    private readonly transactions: Transactions,
  ) {}

  @Post()
  @Answers(PartnerResponse, { status: 201, summary: 'Create a partner', location: true })
  @UseInterceptors(IdempotencyInterceptor)
  async createPartner(
    @Author() by: ChangeAuthor,
    @Idempotent() call: IdempotentCall,
    @Body() { name, email }: CreatePartnerDto,
  ): Promise<RenderedAnswer> {
    return this.onceOnly.run(call, async (tx) => {
      const partner = await this.create.execute(tx, by, { name, email: email ?? null });
      return { ...ok(partner), status: 201, location: `/internal/v1/partners/${partner.id}` };
    });
  }

  @Get()
  @AnswersPage(PartnerResponse, { summary: 'List partners, newest first' })
  async listPartners(@Query() query: PartnersQueryDto): Promise<ListAnswer<PartnerResponse>> {
    const page = await this.partners.list({ status: query.status }, toListOptions(query));
    return new ListAnswer(mapPage(page, toPartnerResponse));
  }

  @Get(':pid')
  @Answers(PartnerResponse, { summary: 'Get a partner' })
  async getPartner(@Param('pid', PathId('ptn')) id: string): Promise<PartnerResponse> {
    return toPartnerResponse(await this.find.getById(id));
  }

  @Patch(':pid')
  @Answers(PartnerResponse, { summary: 'Change the name or the address of a partner' })
  async updatePartner(
    @Author() by: ChangeAuthor,
    @Param('pid', PathId('ptn')) id: string,
    @Body() body: UpdatePartnerDto,
  ): Promise<PartnerResponse> {
    const changes = toPartnerChanges(body);
    return toPartnerResponse(await this.transactions.run((tx) => this.update.execute(tx, by, id, changes)));
  }

  @Post(':pid/suspend')
  @Answers(PartnerResponse, { summary: 'Suspend a partner: its calls answer 403 from the next one on' })
  @HttpCode(200)
  @UseInterceptors(IdempotencyInterceptor)
  async suspendPartner(
    @Author() by: ChangeAuthor,
    @Idempotent() call: IdempotentCall,
    @Param('pid', PathId('ptn')) id: string,
  ): Promise<RenderedAnswer> {
    return this.onceOnly.run(call, async (tx) => ok(await this.status.suspend(tx, by, id)));
  }

  @Post(':pid/reinstate')
  @Answers(PartnerResponse, { summary: 'Undo a suspension' })
  @HttpCode(200)
  @UseInterceptors(IdempotencyInterceptor)
  async reinstatePartner(
    @Author() by: ChangeAuthor,
    @Idempotent() call: IdempotentCall,
    @Param('pid', PathId('ptn')) id: string,
  ): Promise<RenderedAnswer> {
    return this.onceOnly.run(call, async (tx) => ok(await this.status.reinstate(tx, by, id)));
  }
}

function ok(partner: PartnerEntity): Answer {
  return { status: 200, data: toPartnerResponse(partner) };
}
