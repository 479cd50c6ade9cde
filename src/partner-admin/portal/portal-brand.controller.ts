import { Body, Controller, Patch, UseGuards } from '@nestjs/common';
import { ApiTags } from '@nestjs/swagger';
import { Author, type ChangeAuthor } from '../../audit/index.js';
import { Caller, NeedsScope, PortalPrincipal, PortalSessionGuard } from '../../auth/index.js';
import { toPartnerBrand } from '../../common/partner-brand.js';
import { Transactions } from '../../infra/database/index.js';
import { BrandResponse } from '../../infra/http/index.js';
import { Responds } from '../../infra/http/openapi/responds.js';
import { PartnersService } from '../../partners/index.js';
import { BrandDto, toBrandChanges } from '../admin/partners.dto.js';

/** The brand of the session's partner on the pages that its travelers see. `GET session` shows it. */
@ApiTags('Session')
@UseGuards(PortalSessionGuard)
@Controller('portal/v1/brand')
export class PortalBrandController {
  constructor(
    private readonly partners: PartnersService,
    private readonly transactions: Transactions,
  ) {}

  @Patch()
  @NeedsScope('brand:write')
  @Responds(BrandResponse, {
    summary: 'Change the brand on the install page',
    description: 'Changes the fields that are sent and keeps the others; null removes a value.',
  })
  async updateBrand(
    @Author() by: ChangeAuthor,
    @Caller() { partnerId }: PortalPrincipal,
    @Body() body: BrandDto,
  ): Promise<BrandResponse> {
    return this.transactions.run(async (tx) => {
      const { brand } = await this.partners.update(tx, by, partnerId, { brand: toBrandChanges(body) });
      return toPartnerBrand(brand);
    });
  }
}
