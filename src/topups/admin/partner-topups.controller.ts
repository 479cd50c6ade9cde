import { Controller, Get, Param, Query, UseGuards } from '@nestjs/common';
import { ApiTags } from '@nestjs/swagger';
import { AdminTokenGuard } from '../../auth/index.js';
import { mapPage } from '../../common/page.js';
import { ExistingPartner } from '../../partners/index.js';
import { ListResponse, toListOptions } from '../../infra/http/index.js';
import { RespondsPage } from '../../infra/http/openapi/index.js';
import { toTopupFilters, TopupsQueryDto } from '../api/topup-requests.dto.js';
import { TopupResponse, toTopupResponse } from '../api/topup.response.js';
import { ReadTopups } from '../read-topups.js';

/** Support's view of a partner's top-ups, both modes. */
@ApiTags('Support')
@UseGuards(AdminTokenGuard)
@Controller('internal/v1/partners/:pid/topups')
export class PartnerTopupsController {
  constructor(private readonly topups: ReadTopups) {}

  @Get()
  @RespondsPage(TopupResponse, { summary: "List a partner's top-ups in both modes, newest first" })
  async listPartnerTopups(
    @Param('pid', ExistingPartner) partnerId: string,
    @Query() query: TopupsQueryDto,
  ): Promise<ListResponse<TopupResponse>> {
    const page = await this.topups.list({ partnerId }, toTopupFilters(query), toListOptions(query));
    return new ListResponse(mapPage(page, toTopupResponse));
  }
}
