import { Controller, Get, Query, Res, UseGuards } from '@nestjs/common';
import { ApiPropertyOptional, ApiTags } from '@nestjs/swagger';
import { IsIn } from 'class-validator';
import type { FastifyReply } from 'fastify';
import { Caller, NeedsScope, PortalPrincipal, PortalSessionGuard } from '../../auth/index.js';
import { mapPage } from '../../common/page.js';
import { ListQueryDto, ListResponse, Optional, toListOptions } from '../../infra/http/index.js';
import { RespondsPage } from '../../infra/http/openapi/responds.js';
import {
  BalanceResponse,
  toBalanceResponse,
  toTransactionResponse,
  TransactionResponse,
} from '../api/wallet.response.js';
import { ExportStatement } from '../export-statement.js';
import { WalletsRepository } from '../wallets.repository.js';

const FORMATS = ['json', 'csv'] as const;

export class StatementQueryDto extends ListQueryDto {
  @ApiPropertyOptional({
    enum: FORMATS,
    default: 'json',
    description: '`csv`: returns the newest 10,000 transactions as a file (`text/csv`) and ignores `limit`.',
  })
  @Optional()
  @IsIn(FORMATS, { message: `must be one of ${FORMATS.join(', ')}` })
  format?: (typeof FORMATS)[number];
}

/** Balance and statement in the portal. Money exists only in Live (D27), so a session without Live sees none. */
@ApiTags('Balance')
@UseGuards(PortalSessionGuard)
@Controller('portal/v1/wallet')
export class PortalWalletController {
  constructor(
    private readonly wallets: WalletsRepository,
    private readonly statement: ExportStatement,
  ) {}

  @Get()
  @NeedsScope('wallet:read')
  @RespondsPage(BalanceResponse, {
    summary: 'List the balances, one for each currency',
    description: 'Returns the booked, reserved and available amount of each currency.',
  })
  async listBalances(@Caller() caller: PortalPrincipal): Promise<ListResponse<BalanceResponse>> {
    caller.chosenMode('live');
    const items = (await this.wallets.listByPartner(caller.partnerId)).map(toBalanceResponse);
    return new ListResponse({ items, hasMore: false, nextCursor: null });
  }

  @Get('transactions')
  @NeedsScope('wallet:read')
  @RespondsPage(TransactionResponse, {
    summary: 'List the transactions, newest first',
    description: 'Returns charges, refunds, deposits and adjustments. `format=csv` returns a file.',
  })
  async listTransactions(
    @Caller() caller: PortalPrincipal,
    @Query() query: StatementQueryDto,
    @Res({ passthrough: true }) reply: FastifyReply,
  ): Promise<ListResponse<TransactionResponse> | Buffer> {
    caller.chosenMode('live');
    if (query.format === 'csv') return this.csv(caller, reply);
    const page = await this.wallets.listTransactions(caller.partnerId, toListOptions(query));
    return new ListResponse(mapPage(page, toTransactionResponse));
  }

  private async csv({ partnerId }: PortalPrincipal, reply: FastifyReply): Promise<Buffer> {
    void reply
      .header('content-type', 'text/csv; charset=utf-8')
      .header('content-disposition', 'attachment; filename="statement.csv"');
    return Buffer.from(await this.statement.toCsv(partnerId));
  }
}
