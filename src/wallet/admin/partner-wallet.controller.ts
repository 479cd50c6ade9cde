import { Body, Controller, Get, Param, Patch, Query, UseGuards } from '@nestjs/common';
import { ApiTags } from '@nestjs/swagger';
import { Author, type ChangeAuthor } from '../../audit/index.js';
import { AdminTokenGuard, NeedsScope } from '../../auth/index.js';
import { mapPage } from '../../common/page.js';
import { Transactions } from '../../infra/database/index.js';
import { ListQueryDto, ListResponse, toListOptions } from '../../infra/http/index.js';
import { Responds, RespondsPage } from '../../infra/http/openapi/responds.js';
import {
  type IdempotencyKey,
  IdempotencyKeyParam,
  IdempotentExecutor,
  IdempotentPost,
  type IdempotentResponse,
  type RenderedResponse,
} from '../../infra/idempotency/index.js';
import { ExistingPartner } from '../../partners/index.js';
import type { LedgerTransactionEntity } from '../wallet.entity.js';
import { ManageWallet } from '../manage-wallet.js';
import { WalletsRepository } from '../wallets.repository.js';
import {
  AdjustmentDto,
  DepositDto,
  LedgerTransactionResponse,
  toLedgerTransactionResponse,
  toPosting,
  toWalletResponse,
  UpdateWalletDto,
  WalletResponse,
} from './partner-wallet.dto.js';

/** The portal team's administration of a partner's prepaid money, Live only (D27). */
@ApiTags('Wallets')
@UseGuards(AdminTokenGuard)
@Controller('internal/v1/partners/:pid/wallet')
export class PartnerWalletController {
  constructor(
    private readonly manage: ManageWallet,
    private readonly wallets: WalletsRepository,
    private readonly idempotent: IdempotentExecutor,
    private readonly transactions: Transactions,
  ) {}

  @Get()
  @RespondsPage(WalletResponse, {
    summary: "List a partner's balances, one per currency",
    description:
      'Returns the booked, reserved and available amount of each currency, with the low-balance threshold.',
  })
  @NeedsScope('wallet:read')
  async listWallets(@Param('pid', ExistingPartner) partnerId: string): Promise<ListResponse<WalletResponse>> {
    const items = (await this.wallets.listByPartner(partnerId)).map(toWalletResponse);
    return new ListResponse({ items, hasMore: false, nextCursor: null });
  }

  @Patch()
  @Responds(WalletResponse, {
    summary: 'Set the low-balance threshold',
    description: 'The alert `balance.low` is raised when the available amount falls below it.',
  })
  @NeedsScope('money:write')
  async updateWallet(
    @Author() by: ChangeAuthor,
    @Param('pid', ExistingPartner) partnerId: string,
    @Body() { currency, low_balance_amount }: UpdateWalletDto,
  ): Promise<WalletResponse> {
    const change = { partnerId, currency, lowBalanceAmount: low_balance_amount };
    return toWalletResponse(await this.transactions.run((tx) => this.manage.setLowBalance(tx, by, change)));
  }

  @Get('transactions')
  @RespondsPage(LedgerTransactionResponse, {
    summary: "List a partner's transactions, newest first",
    description:
      'Returns charges, refunds, deposits and adjustments, with the note and author of manual bookings.',
  })
  @NeedsScope('wallet:read')
  async listWalletTransactions(
    @Param('pid', ExistingPartner) partnerId: string,
    @Query() query: ListQueryDto,
  ): Promise<ListResponse<LedgerTransactionResponse>> {
    const page = await this.wallets.listTransactions(partnerId, toListOptions(query));
    return new ListResponse(mapPage(page, toLedgerTransactionResponse));
  }

  @IdempotentPost('deposits', {
    status: 201,
    response: LedgerTransactionResponse,
    summary: 'Book a deposit',
    description:
      'Adds money that the partner paid in. A `reference` that is already used gets 409 `reference_taken`.',
    refusals: ['reference_taken', 'conflict'],
  })
  @NeedsScope('money:write')
  async depositMoney(
    @Author() by: ChangeAuthor,
    @IdempotencyKeyParam() key: IdempotencyKey,
    @Param('pid', ExistingPartner) partnerId: string,
    @Body() body: DepositDto,
  ): Promise<RenderedResponse> {
    const command = toPosting(partnerId, body);
    return this.idempotent.execute(key, async (tx) => created(await this.manage.deposit(tx, by, command)));
  }

  @IdempotentPost('adjustments', {
    status: 201,
    response: LedgerTransactionResponse,
    summary: 'Correct a balance',
    description:
      'Raises or lowers the available amount. It cannot deduct money that is reserved for open orders.',
    refusals: ['reference_taken', 'conflict'],
  })
  @NeedsScope('money:write')
  async adjustBalance(
    @Author() by: ChangeAuthor,
    @IdempotencyKeyParam() key: IdempotencyKey,
    @Param('pid', ExistingPartner) partnerId: string,
    @Body() body: AdjustmentDto,
  ): Promise<RenderedResponse> {
    const command = toPosting(partnerId, body);
    return this.idempotent.execute(key, async (tx) => created(await this.manage.adjust(tx, by, command)));
  }
}

function created(transaction: LedgerTransactionEntity): IdempotentResponse {
  return { data: toLedgerTransactionResponse(transaction) };
}
