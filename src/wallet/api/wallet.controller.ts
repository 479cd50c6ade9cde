import { Controller, Get, Query, UseGuards } from '@nestjs/common';
import { ApiTags } from '@nestjs/swagger';
import { BearerKeyGuard, Caller, NeedsScope, PartnerPrincipal } from '../../auth/index.js';
import { AppError } from '../../common/errors/index.js';
import { mapPage } from '../../common/page.js';
import { ListResponse, ListQueryDto, toListOptions } from '../../infra/http/index.js';
import { RespondsPage } from '../../infra/http/openapi/responds.js';
import { WalletsRepository } from '../wallets.repository.js';
import {
  BalanceResponse,
  toBalanceResponse,
  toTransactionResponse,
  TransactionResponse,
} from './wallet.response.js';

/** The balance that every sandbox key sees; sandbox is never charged (D26). */
const MOCK_BALANCE = toBalanceResponse({ currency: 'USD', posted: 1_000_000, held: 0 });

/** The prepaid wallet of a live partner. Sandbox has a constant mock balance and no ledger. */
@ApiTags('Balance')
@UseGuards(BearerKeyGuard)
@Controller('v1')
export class WalletController {
  constructor(private readonly wallets: WalletsRepository) {}

  @Get('balance')
  @RespondsPage(BalanceResponse, {
    summary: 'Get the balance in every currency',
    description:
      'Returns one balance for each currency: the booked amount, the part reserved for open orders, and the available rest.',
  })
  @NeedsScope('wallet:read')
  async getBalance(@Caller() caller: PartnerPrincipal): Promise<ListResponse<BalanceResponse>> {
    const items =
      caller.mode === 'sandbox'
        ? [MOCK_BALANCE]
        : (await this.wallets.listByPartner(caller.partnerId)).map(toBalanceResponse);
    return new ListResponse({ items, hasMore: false, nextCursor: null });
  }

  @Get('transactions')
  @RespondsPage(TransactionResponse, {
    summary: 'List the transactions of the wallet, newest first',
    description: 'Returns charges, refunds, deposits and adjustments. Reserved amounts are not transactions.',
  })
  @NeedsScope('wallet:read')
  async listTransactions(
    @Caller() caller: PartnerPrincipal,
    @Query() query: ListQueryDto,
  ): Promise<ListResponse<TransactionResponse>> {
    if (caller.mode === 'sandbox') return noTransactions(query);
    const page = await this.wallets.listTransactions(caller.partnerId, toListOptions(query));
    return new ListResponse(mapPage(page, toTransactionResponse));
  }
}

function noTransactions({ cursor }: ListQueryDto): ListResponse<TransactionResponse> {
  // A list that is always empty has never issued a cursor.
  if (cursor !== undefined) throw new AppError('invalid_cursor');
  return new ListResponse<TransactionResponse>({ items: [], hasMore: false, nextCursor: null });
}
