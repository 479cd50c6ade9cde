import { Controller, Get, Param, Query, UseGuards } from '@nestjs/common';
import { ApiTags } from '@nestjs/swagger';
import { AdminTokenGuard, NeedsScope } from '../../auth/index.js';
import { mapPage } from '../../common/page.js';
import { ExistingPartner } from '../../partners/index.js';
import { ListResponse, toListOptions } from '../../infra/http/index.js';
import { RespondsPage } from '../../infra/http/openapi/responds.js';
import { EsimResponse, EsimsQueryDto, toEsimFilters, toEsimResponse } from '../api/esim.dto.js';
import { EsimQueries } from '../esim-queries.js';

/** Support's view of a partner's eSIMs, both modes, without install data (D25). */
@ApiTags('Support')
@UseGuards(AdminTokenGuard)
@Controller('internal/v1/partners/:pid/esims')
export class PartnerEsimsController {
  constructor(private readonly esims: EsimQueries) {}

  @Get()
  @RespondsPage(EsimResponse, {
    summary: "List a partner's eSIMs in both modes, without install data",
    description: "Returns the eSIMs as the partner's list shows them.",
  })
  @NeedsScope('orders:read')
  async listPartnerEsims(
    @Param('pid', ExistingPartner) partnerId: string,
    @Query() query: EsimsQueryDto,
  ): Promise<ListResponse<EsimResponse>> {
    const page = await this.esims.list({ partnerId }, toEsimFilters(query), toListOptions(query));
    return new ListResponse(mapPage(page, toEsimResponse));
  }
}
