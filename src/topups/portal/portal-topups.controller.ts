import { Controller, Get, Param, Query, UseGuards } from '@nestjs/common';
import { ApiTags } from '@nestjs/swagger';
import { Caller, NeedsScope, PortalPrincipal, PortalSessionGuard } from '../../auth/index.js';
import type { Mode } from '../../common/mode.js';
import { mapPage } from '../../common/page.js';
import { ListResponse, PathId, PortalMode, toListOptions } from '../../infra/http/index.js';
import { Responds, RespondsPage } from '../../infra/http/openapi/responds.js';
import { TopupsQueryDto, toTopupFilters } from '../api/topup-requests.dto.js';
import { TopupResponse, toTopupResponse } from '../api/topup.response.js';
import { TopupsRepository } from '../topups.repository.js';

export class PortalTopupsQueryDto extends TopupsQueryDto {
  @PortalMode()
  mode?: Mode | null;
}

/** A partner's top-ups in the portal. */
@ApiTags('Topups')
@UseGuards(PortalSessionGuard)
@Controller('portal/v1/topups')
export class PortalTopupsController {
  constructor(private readonly topups: TopupsRepository) {}

  @Get()
  @NeedsScope('orders:read')
  @RespondsPage(TopupResponse, {
    summary: 'List the top-ups of a mode, newest first',
    description: 'Returns the top-ups as the partner API shows them.',
  })
  async listTopups(
    @Caller() caller: PortalPrincipal,
    @Query() query: PortalTopupsQueryDto,
  ): Promise<ListResponse<TopupResponse>> {
    const page = await this.topups.list(caller.inMode(query), toTopupFilters(query), toListOptions(query));
    return new ListResponse(mapPage(page, toTopupResponse));
  }

  @Get(':id')
  @NeedsScope('orders:read')
  @Responds(TopupResponse, {
    summary: 'Get a top-up',
    description: 'Returns the top-up as the partner API shows it.',
  })
  async getTopup(
    @Caller() caller: PortalPrincipal,
    @Param('id', PathId('top')) id: string,
  ): Promise<TopupResponse> {
    return toTopupResponse(await this.topups.getById(caller.anyMode, id));
  }
}
