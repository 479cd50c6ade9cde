import { Body, Controller, Get, HttpCode, Param, Patch, Post, Query, UseGuards } from '@nestjs/common';
import { ApiTags } from '@nestjs/swagger';
import { AuditLog, Author, type ChangeAuthor } from '../../audit/index.js';
import { Caller, NeedsScope, PortalPrincipal, PortalSessionGuard } from '../../auth/index.js';
import { EsimPackageResponse, toPackageResponse } from '../../catalog/index.js';
import type { Mode } from '../../common/mode.js';
import { mapPage } from '../../common/page.js';
import type { TenantScope } from '../../common/tenant-scope.js';
import { Transactions } from '../../infra/database/index.js';
import { ListQueryDto, ListResponse, PathId, PortalMode, toListOptions } from '../../infra/http/index.js';
import { ApiRefusals, Responds, RespondsPage } from '../../infra/http/openapi/responds.js';
import {
  type IdempotencyKey,
  IdempotencyKeyParam,
  IdempotentExecutor,
  IdempotentPost,
  NoIdempotencyKey,
  type RenderedResponse,
} from '../../infra/idempotency/index.js';
import {
  ControlEsimDto,
  EsimPlanResponse,
  EsimResponse,
  EsimsQueryDto,
  PLANS_PAGE,
  toEsimFilters,
  toEsimLabels,
  toEsimPlanResponse,
  toEsimResponse,
  toEsimWithInstallResponse,
  UpdateEsimDto,
} from '../api/esim.dto.js';
import { ChangeEsim } from '../change-esim.js';
import { type ControlAction, toActivationCode } from '../esim.js';
import { EsimQueries } from '../esim-queries.js';
import { QrCodes } from '../qr-codes.js';
import { InstallDataResponse } from './install-data.response.js';

export class PortalEsimsQueryDto extends EsimsQueryDto {
  @PortalMode()
  mode?: Mode | null;
}

const CONTROL = {
  status: 202,
  response: EsimResponse,
  refusals: ['not_supported', 'limit_reached'],
} as const;

/** A partner's eSIMs in the portal; an audited POST shows the installation data (D25). */
@ApiTags('Esims')
@UseGuards(PortalSessionGuard)
@Controller('portal/v1/esims')
export class PortalEsimsController {
  constructor(
    private readonly esims: EsimQueries,
    private readonly changing: ChangeEsim,
    private readonly qrCodes: QrCodes,
    private readonly audit: AuditLog,
    private readonly transactions: Transactions,
    private readonly idempotent: IdempotentExecutor,
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

  @Get(':id/topup-packages')
  @NeedsScope('orders:read')
  @RespondsPage(EsimPackageResponse, {
    summary: 'List the top-up packages that fit an eSIM now, cheapest first',
    description: 'Returns the top-up packages that this eSIM accepts now.',
  })
  async listTopupPackages(
    @Caller() caller: PortalPrincipal,
    @Param('id', PathId('esim')) id: string,
    @Query() query: ListQueryDto,
  ): Promise<ListResponse<EsimPackageResponse>> {
    const scope = await this.scopeOf(caller, id);
    const page = await this.esims.listTopupPackages(scope, id, toListOptions(query));
    return new ListResponse(mapPage(page, toPackageResponse));
  }

  @Patch(':id')
  @NeedsScope('esims:write')
  @ApiRefusals('limit_reached')
  @Responds(EsimResponse, {
    summary: 'Change the label or the metadata of an eSIM',
    description:
      'Changes the fields that are sent and keeps the others. Null removes the label, or all metadata.',
  })
  async updateEsim(
    @Author() by: ChangeAuthor,
    @Caller() caller: PortalPrincipal,
    @Param('id', PathId('esim')) id: string,
    @Body() body: UpdateEsimDto,
  ): Promise<EsimResponse> {
    const labels = toEsimLabels(body);
    const scope = await this.scopeOf(caller, id);
    return this.transactions.run(async (tx) => {
      const esim = await this.changing.describe(tx, scope, id, labels);
      await this.audit.record(tx, {
        ...by,
        action: 'esim.described',
        partnerId: scope.partnerId,
        subjectId: id,
        details: { mode: scope.mode, fields: Object.keys(labels) },
      });
      return toEsimResponse(await this.esims.showOne(esim, tx.manager));
    });
  }

  @IdempotentPost(':id/suspend', {
    ...CONTROL,
    summary: 'Suspend an eSIM',
    description: 'Stops the data of the eSIM until it is resumed; its validity goes on.',
  })
  @NeedsScope('esims:write')
  async suspendEsim(
    @Author() by: ChangeAuthor,
    @Caller() caller: PortalPrincipal,
    @IdempotencyKeyParam() key: IdempotencyKey,
    @Param('id', PathId('esim')) id: string,
    @Body() body: ControlEsimDto,
  ): Promise<RenderedResponse> {
    return this.control(by, caller, key, { id, action: 'suspend', ...body });
  }

  @IdempotentPost(':id/resume', {
    ...CONTROL,
    summary: 'Resume a suspended eSIM',
    description: 'Ends the suspension of the eSIM.',
  })
  @NeedsScope('esims:write')
  async resumeEsim(
    @Author() by: ChangeAuthor,
    @Caller() caller: PortalPrincipal,
    @IdempotencyKeyParam() key: IdempotencyKey,
    @Param('id', PathId('esim')) id: string,
    @Body() body: ControlEsimDto,
  ): Promise<RenderedResponse> {
    return this.control(by, caller, key, { id, action: 'resume', ...body });
  }

  @IdempotentPost(':id/revoke', {
    ...CONTROL,
    summary: 'Revoke an eSIM without a refund',
    description:
      'Ends the eSIM for ever and refunds nothing. A live eSIM needs a session younger than 15 minutes.',
    refusals: [...CONTROL.refusals, 'step_up_required'],
  })
  @NeedsScope('esims:write')
  async revokeEsim(
    @Author() by: ChangeAuthor,
    @Caller() caller: PortalPrincipal,
    @IdempotencyKeyParam() key: IdempotencyKey,
    @Param('id', PathId('esim')) id: string,
    @Body() body: ControlEsimDto,
  ): Promise<RenderedResponse> {
    return this.control(by, caller, key, { id, action: 'revoke', ...body });
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

  /** A write names one mode: that of the eSIM. @throws NotFound */
  private async scopeOf(caller: PortalPrincipal, id: string): Promise<TenantScope> {
    const { partnerId, mode } = await this.esims.getById(caller.anyMode, id);
    return { partnerId, mode };
  }

  private async control(
    by: ChangeAuthor,
    caller: PortalPrincipal,
    key: IdempotencyKey,
    { id, action, reason = null }: { id: string; action: ControlAction; reason?: string | null },
  ): Promise<RenderedResponse> {
    const scope = await this.scopeOf(caller, id);
    // Revoking destroys what a customer has paid for.
    if (action === 'revoke' && scope.mode === 'live') caller.assertYoung();
    return this.idempotent.execute(key, async (tx) => {
      const esim = await this.changing.request(tx, scope, id, { action, reason });
      await this.audit.record(tx, {
        ...by,
        action: `esim.${action}_requested`,
        partnerId: scope.partnerId,
        subjectId: id,
        details: { mode: scope.mode },
      });
      return { data: toEsimResponse(await this.esims.showOne(esim, tx.manager)) };
    });
  }
}
