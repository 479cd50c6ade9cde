import { Controller, Get, HttpCode, Param, Post, Query, UseGuards } from '@nestjs/common';
import { ApiTags } from '@nestjs/swagger';
import { AuditLog, Author, type ChangeAuthor } from '../../audit/index.js';
import { Caller, NeedsScope, PortalPrincipal, PortalSessionGuard } from '../../auth/index.js';
import type { Mode } from '../../common/mode.js';
import { mapPage } from '../../common/page.js';
import { Transactions } from '../../infra/database/index.js';
import { ListQueryDto, ListResponse, PathId, PortalMode, toListOptions } from '../../infra/http/index.js';
import { ApiRefusals, Responds, RespondsPage } from '../../infra/http/openapi/responds.js';
import { NoIdempotencyKey } from '../../infra/idempotency/index.js';
import {
  EsimPlanResponse,
  EsimResponse,
  EsimsQueryDto,
  PLANS_PAGE,
  toEsimFilters,
  toEsimPlanResponse,
  toEsimResponse,
  toEsimWithInstallResponse,
} from '../api/esim.dto.js';
import { toActivationCode } from '../esim.js';
import { EsimQueries } from '../esim-queries.js';
import { QrCodes } from '../qr-codes.js';
import { InstallDataResponse } from './install-data.response.js';

export class PortalEsimsQueryDto extends EsimsQueryDto {
  @PortalMode()
  mode!: Mode;
}

/** A partner's eSIMs in the portal; an audited POST shows the installation data (D25). */
@ApiTags('Esims')
@UseGuards(PortalSessionGuard)
@Controller('portal/v1/esims')
export class PortalEsimsController {
  constructor(
    private readonly esims: EsimQueries,
    private readonly qrCodes: QrCodes,
    private readonly audit: AuditLog,
    private readonly transactions: Transactions,
  ) {}

  @Get()
  @NeedsScope('orders:read')
  @RespondsPage(EsimResponse, {
    summary: 'List the eSIMs of a mode, newest first',
    description: 'Returns the eSIMs without install data.',
  })
  async listEsims(
    @Caller() caller: PortalPrincipal,
    @Query() query: PortalEsimsQueryDto,
  ): Promise<ListResponse<EsimResponse>> {
    const page = await this.esims.list(caller.inMode(query), toEsimFilters(query), toListOptions(query));
    return new ListResponse(mapPage(page, toEsimResponse));
  }

  @Get(':id')
  @NeedsScope('orders:read')
  @Responds(EsimResponse, {
    summary: 'Get an eSIM, without install data',
    description: 'Returns the eSIM. A separate call shows its install data.',
  })
  async getEsim(
    @Caller() caller: PortalPrincipal,
    @Param('id', PathId('esim')) id: string,
  ): Promise<EsimResponse> {
    return toEsimResponse(await this.esims.showOne(await this.esims.getById(caller.anyMode, id)));
  }

  @Get(':id/plans')
  @NeedsScope('orders:read')
  @RespondsPage(EsimPlanResponse, PLANS_PAGE)
  async listEsimPlans(
    @Caller() caller: PortalPrincipal,
    @Param('id', PathId('esim')) id: string,
    @Query() query: ListQueryDto,
  ): Promise<ListResponse<EsimPlanResponse>> {
    const { page, pooled } = await this.esims.listPlans(caller.anyMode, id, toListOptions(query));
    return new ListResponse(mapPage(page, toEsimPlanResponse), { pooled });
  }

  /** Takes no `Idempotency-Key`: a stored response would copy the install data, and every view is audited. */
  @Post(':id/install-data')
  @HttpCode(200)
  @NoIdempotencyKey()
  @NeedsScope('orders:read')
  @ApiRefusals('step_up_required')
  @Responds(InstallDataResponse, {
    summary: 'Show the install data of an eSIM',
    description:
      'Returns the activation code and the QR code. The audit log records who viewed them. A live eSIM needs a session younger than 15 minutes.',
  })
  async showInstallData(
    @Author() by: ChangeAuthor,
    @Caller() caller: PortalPrincipal,
    @Param('id', PathId('esim')) id: string,
  ): Promise<InstallDataResponse> {
    const { esim, install } = await this.esims.getWithInstallData(caller.anyMode, id);
    // Installing a live eSIM consumes what a customer has paid for.
    if (esim.mode === 'live') caller.assertYoung();
    const { partnerId } = caller;
    const entry = {
      action: 'esim.install_data_shown',
      partnerId,
      subjectId: id,
      details: { mode: esim.mode },
    };
    await this.transactions.run((tx) => this.audit.record(tx, { ...by, ...entry }));
    const shown = toEsimWithInstallResponse(await this.esims.showOne(esim), install);
    const { svg, pngBase64 } = await this.qrCodes.draw(esim, toActivationCode(install));
    return {
      esim_id: id,
      smdp_address: shown.smdp_address,
      matching_id: shown.matching_id,
      activation_code: shown.activation_code,
      confirmation_code: shown.confirmation_code,
      pin: shown.pin,
      puk: shown.puk,
      install: shown.install,
      svg,
      png_base64: pngBase64,
    };
  }
}
