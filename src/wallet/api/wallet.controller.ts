import { Controller, Get, Query, UseGuards } from '@nestjs/common';
import { ApiTags } from '@nestjs/swagger';
import { BearerKeyGuard, Caller, PartnerPrincipal } from '../../auth/index.js';
import { AppError } from '../../common/errors/index.js';
import { ListAnswer, ListQueryDto } from '../../infra/http/index.js';
import { AnswersPage } from '../../infra/http/openapi/index.js';
import { BalanceResponse, TransactionResponse } from './wallet.response.js';

/** What every sandbox key sees: nothing is ever charged to it (D26). */
const MOCK_BALANCE: BalanceResponse = {
  currency: 'USD',
  posted: { amount: 1_000_000, currency: 'USD' },
  held: { amount: 0, currency: 'USD' },
  available: { amount: 1_000_000, currency: 'USD' },
};

/** The prepaid wallet. Sandbox has a constant mock balance and no ledger; a live partner has no wallet yet. */
@ApiTags('Balance')
@UseGuards(BearerKeyGuard)
@Controller('v1')
export class WalletController {
  @Get('balance')
  @AnswersPage(BalanceResponse, { summary: 'Get the balance in every currency' })
  getBalance(@Caller() caller: PartnerPrincipal): ListAnswer<BalanceResponse> {
    const items = caller.mode === 'sandbox' ? [MOCK_BALANCE] : [];
    return new ListAnswer<BalanceResponse>({ items, hasMore: false, nextCursor: null });
  }

  @Get('transactions')
  @AnswersPage(TransactionResponse, { summary: 'List the transactions of the wallet, newest first' })
  listTransactions(@Query() query: ListQueryDto): ListAnswer<TransactionResponse> {
    // An empty list has issued no cursor.
    if (query.cursor !== undefined) throw new AppError('invalid_cursor');
    return new ListAnswer<TransactionResponse>({ items: [], hasMore: false, nextCursor: null });
  }
}
