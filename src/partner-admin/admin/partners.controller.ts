import { Body, Controller, Get, Param, Patch, Query, UseGuards } from '@nestjs/common';
import { ApiTags } from '@nestjs/swagger';
import { Author, type ChangeAuthor } from '../../audit/index.js';
import { AdminPrincipal, AdminTokenGuard, Caller, NeedsScope } from '../../auth/index.js';
import { AppError } from '../../common/errors/index.js';
import { Transactions, type Tx } from '../../infra/database/index.js';
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
import { PartnersRepository, type PartnerEntity, PartnersService } from '../../partners/index.js';
import { ManageWallet, WalletsRepository } from '../../wallet/index.js';
import {
  CreatePartnerDto,
  PartnerResponse,
  PartnersQueryDto,
  toPartnerChanges,
  toPartnerResponse,
  ReinstatePartnerDto,
  SuspendPartnerDto,
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
    private readonly wallets: WalletsRepository,
    private readonly manageWallet: ManageWallet,
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
      return {
        ...(await this.ok(tx, partner)),
        status: 201,
        location: `/internal/v1/partners/${partner.id}`,
      };
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
    return new ListResponse({ ...page, items: await this.shown(page.items) });
  }

  @Get(':pid')
  @Responds(PartnerResponse, {
    summary: 'Get a partner',
    description: 'Returns the partner with its status, its brand and its low-balance thresholds.',
  })
  @NeedsScope('partners:read')
  async getPartner(@Param('pid', PathId('ptn')) id: string): Promise<PartnerResponse> {
    return this.show(await this.partners.getById(id));
  }

  @Patch(':pid')
  @Responds(PartnerResponse, {
    summary: 'Change the name, the e-mail address, the brand or the low-balance threshold',
    description:
      'Changes the fields that are sent and keeps the others, also inside `brand`. `low_balance` also needs the scope `money:write`.',
  })
  @NeedsScope('partners:write')
  async updatePartner(
    @Author() by: ChangeAuthor,
    @Caller() caller: AdminPrincipal,
    @Param('pid', PathId('ptn')) id: string,
    @Body() body: UpdatePartnerDto,
  ): Promise<PartnerResponse> {
    const { low_balance: lowBalance } = body;
    if (lowBalance !== undefined && !caller.holds('money:write')) throw mayNotSetLowBalance();
    return this.transactions.run(async (tx) => {
      const partner = await this.partners.update(tx, by, id, toPartnerChanges(body));
      if (lowBalance !== undefined) {
        const { amount: lowBalanceAmount, currency } = lowBalance;
        await this.manageWallet.setLowBalance(tx, by, { partnerId: id, currency, lowBalanceAmount });
      }
      return this.show(partner, tx);
    });
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
    @Body() { reason }: SuspendPartnerDto,
  ): Promise<RenderedResponse> {
    return this.idempotent.execute(key, async (tx) =>
      this.ok(tx, await this.partners.suspend(tx, by, id, reason ?? null)),
    );
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
    @Body() { note }: ReinstatePartnerDto,
  ): Promise<RenderedResponse> {
    return this.idempotent.execute(key, async (tx) =>
      this.ok(tx, await this.partners.reinstate(tx, by, id, note ?? null)),
    );
  }

  private async ok(tx: Tx, partner: PartnerEntity): Promise<IdempotentResponse> {
    return { data: await this.show(partner, tx) };
  }

  private async show(partner: PartnerEntity, tx?: Tx): Promise<PartnerResponse> {
    return (await this.shown([partner], tx))[0]!;
  }

  private async shown(partners: readonly PartnerEntity[], tx?: Tx): Promise<PartnerResponse[]> {
    const thresholds = await this.wallets.listLowBalances(
      partners.map(({ id }) => id),
      tx,
    );
    return partners.map((partner) => toPartnerResponse(partner, thresholds));
  }
}

function mayNotSetLowBalance(): AppError {
  return new AppError('forbidden', {
    detail: 'This admin token does not include money (money:write). Ask for access that does.',
  });
}
