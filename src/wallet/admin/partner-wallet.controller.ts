import { Body, Controller, Get, Param, Patch, Post, Query, UseGuards, UseInterceptors } from '@nestjs/common';
import { ApiTags } from '@nestjs/swagger';
import { Author, type ChangeAuthor } from '../../audit/index.js';
import { AdminTokenGuard } from '../../auth/index.js';
import { mapPage } from '../../common/page.js';
import { Transactions } from '../../infra/database/index.js';
import { ListAnswer, ListQueryDto, toListOptions } from '../../infra/http/index.js';
import { Answers, AnswersPage, ApiRefusals } from '../../infra/http/openapi/index.js';
import {
  type Answer,
  Idempotent,
  type IdempotentCall,
  IdempotencyInterceptor,
  OnceOnly,
  type RenderedAnswer,
} from '../../infra/idempotency/index.js';
import { ExistingPartner } from '../../partners/index.js';
import type { LedgerTransactionEntity } from '../ledger-transaction.entity.js';
import { ManageWallet } from '../manage-wallet.js';
import { WalletsRepository } from '../wallets.repository.js';
import {
  LedgerTransactionResponse,
  toLedgerTransactionResponse,
  toWalletResponse,
  WalletResponse,
} from './wallet-admin.response.js';
import { AdjustmentDto, DepositDto, toPosting, UpdateWalletDto } from './wallet-requests.dto.js';

/** The portal team's administration of a partner's prepaid money, Live only (D27). */
@ApiTags('Wallets')
@UseGuards(AdminTokenGuard)
@Controller('internal/v1/partners/:pid/wallet')
export class PartnerWalletController {
  constructor(
    private readonly manage: ManageWallet,
    private readonly wallets: WalletsRepository,
    private readonly onceOnly: OnceOnly,
    private readonly transactions: Transactions,
  ) {}

  @Get()
  @AnswersPage(WalletResponse, { summary: "List a partner's balances, one per currency" })
  async listWallets(@Param('pid', ExistingPartner) partnerId: string): Promise<ListAnswer<WalletResponse>> {
    const items = (await this.wallets.listByPartner(partnerId)).map(toWalletResponse);
    return new ListAnswer({ items, hasMore: false, nextCursor: null });
  }

  @Patch()
  @Answers(WalletResponse, { summary: 'Set the available amount below which a wallet counts as low' })
  async updateWallet(
    @Author() by: ChangeAuthor,
    @Param('pid', ExistingPartner) partnerId: string,
    @Body() { currency, low_balance_amount }: UpdateWalletDto,
  ): Promise<WalletResponse> {
    const change = { partnerId, currency, lowBalanceAmount: low_balance_amount };
    return toWalletResponse(await this.transactions.run((tx) => this.manage.setLowBalance(tx, by, change)));
  }

  @Get('transactions')
  @AnswersPage(LedgerTransactionResponse, { summary: "List a partner's transactions, newest first" })
  async listWalletTransactions(
    @Param('pid', ExistingPartner) partnerId: string,
    @Query() query: ListQueryDto,
  ): Promise<ListAnswer<LedgerTransactionResponse>> {
    const page = await this.wallets.listTransactions(partnerId, toListOptions(query));
    return new ListAnswer(mapPage(page, toLedgerTransactionResponse));
  }

  @Post('deposits')
  @Answers(LedgerTransactionResponse, { status: 201, summary: 'Book money that a partner paid in' })
  @ApiRefusals('reference_taken', 'conflict')
  @UseInterceptors(IdempotencyInterceptor)
  async depositMoney(
    @Author() by: ChangeAuthor,
    @Idempotent() call: IdempotentCall,
    @Param('pid', ExistingPartner) partnerId: string,
    @Body() body: DepositDto,
  ): Promise<RenderedAnswer> {
    const command = toPosting(partnerId, body);
    return this.onceOnly.run(call, async (tx) => created(await this.manage.deposit(tx, by, command)));
  }

  @Post('adjustments')
  @Answers(LedgerTransactionResponse, {
    status: 201,
    summary: 'Correct a balance, up or down; what is held cannot be taken',
  })
  @ApiRefusals('reference_taken', 'conflict')
  @UseInterceptors(IdempotencyInterceptor)
  async adjustBalance(
    @Author() by: ChangeAuthor,
    @Idempotent() call: IdempotentCall,
    @Param('pid', ExistingPartner) partnerId: string,
    @Body() body: AdjustmentDto,
  ): Promise<RenderedAnswer> {
    const command = toPosting(partnerId, body);
    return this.onceOnly.run(call, async (tx) => created(await this.manage.adjust(tx, by, command)));
  }
}

function created(transaction: LedgerTransactionEntity): Answer {
  return { status: 201, data: toLedgerTransactionResponse(transaction) };
}
