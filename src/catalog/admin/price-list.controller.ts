import { Body, Controller, Param, Put, UseGuards } from '@nestjs/common';
import { ApiTags } from '@nestjs/swagger';
import { Author, type ChangeAuthor } from '../../audit/index.js';
import { AdminTokenGuard, NeedsScope } from '../../auth/index.js';
import { Transactions } from '../../infra/database/index.js';
import { PathId } from '../../infra/http/index.js';
import { Responds } from '../../infra/http/openapi/responds.js';
import { SetPriceList } from '../set-price-list.js';
import { PriceListDto, PriceListResponse, toPriceListResponse, toPriceListTerms } from './price-list.dto.js';

/** A partner's prices of live packages (D27). */
@ApiTags('Catalog')
@UseGuards(AdminTokenGuard)
@Controller('internal/v1/partners/:pid/price-list')
export class PriceListController {
  constructor(
    private readonly setPriceList: SetPriceList,
    private readonly transactions: Transactions,
  ) {}

  @Put()
  @Responds(PriceListResponse, {
    summary: "Replace a partner's price list for live packages",
    description:
      'Replaces all margins and fixed prices at once. Orders keep the price that they were accepted with.',
  })
  @NeedsScope('money:write')
  async replacePriceList(
    @Author() by: ChangeAuthor,
    @Param('pid', PathId('ptn')) partnerId: string,
    @Body() body: PriceListDto,
  ): Promise<PriceListResponse> {
    const terms = toPriceListTerms(body);
    const list = await this.transactions.run((tx) => this.setPriceList.set(tx, by, partnerId, terms));
    return toPriceListResponse(partnerId, list);
  }
}
