import { Body, Controller, Get, Param, Patch, Query, UseGuards } from '@nestjs/common';
import { ApiTags } from '@nestjs/swagger';
import { BearerKeyGuard, Caller, NeedsScope, PartnerPrincipal } from '../../auth/index.js';
import { EsimPackageResponse, toPackageResponse } from '../../catalog/index.js';
import { mapPage } from '../../common/page.js';
import { Transactions } from '../../infra/database/index.js';
import { ListQueryDto, ListResponse, PathId, toListOptions } from '../../infra/http/index.js';
import { ApiRefusals, Responds, RespondsPage } from '../../infra/http/openapi/responds.js';
import {
  type IdempotencyKey,
  IdempotencyKeyParam,
  IdempotentExecutor,
  IdempotentPost,
  type RenderedResponse,
} from '../../infra/idempotency/index.js';
import { ChangeEsim } from '../change-esim.js';
import { type ControlAction, toActivationCode } from '../esim.js';
import { EsimQueries } from '../esim-queries.js';
import {
  ControlEsimDto,
  EsimPlanResponse,
  EsimResponse,
  EsimsQueryDto,
  EsimWithInstallResponse,
  PLANS_PAGE,
  QrCodeResponse,
  toEsimFilters,
  toEsimLabels,
  toEsimPlanResponse,
  toEsimResponse,
  toEsimWithInstallResponse,
  toUsageResponse,
  UpdateEsimDto,
  UsageResponse,
} from './esim.dto.js';
import { QrCodes } from '../qr-codes.js';

const CONTROL = {
  status: 202,
  response: EsimResponse,
  location: true,
  refusals: ['not_supported', 'limit_reached'],
} as const;

@ApiTags('Esims')
@UseGuards(BearerKeyGuard)
@Controller('v1/esims')
export class EsimsController {
  constructor(
    private readonly esims: EsimQueries,
    private readonly changing: ChangeEsim,
    private readonly qrCodes: QrCodes,
    private readonly transactions: Transactions,
    private readonly idempotent: IdempotentExecutor,
  ) {}

  @Get()
  @RespondsPage(EsimResponse, {
    summary: 'List eSIMs, newest first, without install data',
    description: "Returns the eSIMs of the key's mode. Filter them by status, order, ICCID or label.",
  })
  @NeedsScope('esims:read')
  async listEsims(
    @Caller() caller: PartnerPrincipal,
    @Query() query: EsimsQueryDto,
  ): Promise<ListResponse<EsimResponse>> {
    const page = await this.esims.list(caller, toEsimFilters(query), toListOptions(query));
    return new ListResponse(mapPage(page, toEsimResponse));
  }

  @Get(':id')
  @Responds(EsimWithInstallResponse, {
    summary: 'Get an eSIM with its install data',
    description:
      'Returns the eSIM with its activation code. Only this call and the QR code call show install data. Both need the scope `install:read`.',
  })
  @NeedsScope('install:read')
  async getEsim(
    @Caller() caller: PartnerPrincipal,
    @Param('id', PathId('esim')) id: string,
  ): Promise<EsimWithInstallResponse> {
    const { esim, install } = await this.esims.getWithInstallData(caller, id);
    return toEsimWithInstallResponse(await this.esims.showOne(esim), install);
  }

  @Patch(':id')
  @Responds(EsimResponse, {
    summary: 'Change the label or the metadata of an eSIM',
    description:
      'Changes the fields that are sent and keeps the others. Null removes the label, or all metadata.',
  })
  @ApiRefusals('limit_reached')
  @NeedsScope('esims:write')
  async updateEsim(
    @Caller() caller: PartnerPrincipal,
    @Param('id', PathId('esim')) id: string,
    @Body() body: UpdateEsimDto,
  ): Promise<EsimResponse> {
    const labels = toEsimLabels(body);
    return this.transactions.run(async (tx) =>
      toEsimResponse(
        await this.esims.showOne(await this.changing.describe(tx, caller, id, labels), tx.manager),
      ),
    );
  }

  @IdempotentPost(':id/suspend', {
    ...CONTROL,
    summary: 'Suspend an eSIM',
    description:
      'Stops the data of the eSIM until it is resumed; its validity goes on. The eSIM has `pending_action` until the wholesaler confirms, then `esim.suspended` is sent. If it is not confirmed, `action_failure` says why.',
  })
  @NeedsScope('esims:write')
  async suspendEsim(
    @Caller() caller: PartnerPrincipal,
    @IdempotencyKeyParam() key: IdempotencyKey,
    @Param('id', PathId('esim')) id: string,
    @Body() body: ControlEsimDto,
  ): Promise<RenderedResponse> {
    return this.control(caller, key, id, 'suspend', body);
  }

  @IdempotentPost(':id/resume', {
    ...CONTROL,
    summary: 'Resume a suspended eSIM',
    description:
      'Ends the suspension of the eSIM. The eSIM has `pending_action` until the wholesaler confirms, then `esim.resumed` is sent.',
  })
  @NeedsScope('esims:write')
  async resumeEsim(
    @Caller() caller: PartnerPrincipal,
    @IdempotencyKeyParam() key: IdempotencyKey,
    @Param('id', PathId('esim')) id: string,
    @Body() body: ControlEsimDto,
  ): Promise<RenderedResponse> {
    return this.control(caller, key, id, 'resume', body);
  }

  @IdempotentPost(':id/revoke', {
    ...CONTROL,
    summary: 'Revoke an eSIM without a refund',
    description:
      'Ends the eSIM for ever and refunds nothing. To get a refund for an eSIM that nobody has downloaded, cancel its order. The eSIM has `pending_action` until the wholesaler confirms, then `esim.revoked` is sent.',
  })
  @NeedsScope('esims:write')
  async revokeEsim(
    @Caller() caller: PartnerPrincipal,
    @IdempotencyKeyParam() key: IdempotencyKey,
    @Param('id', PathId('esim')) id: string,
    @Body() body: ControlEsimDto,
  ): Promise<RenderedResponse> {
    return this.control(caller, key, id, 'revoke', body);
  }

  @Get(':id/qr')
  @Responds(QrCodeResponse, {
    summary: 'Get the QR code that installs an eSIM',
    description:
      'Returns the activation code as text, as SVG and as Base64 PNG. The customer scans it with the device.',
  })
  @NeedsScope('install:read')
  async getQrCode(
    @Caller() caller: PartnerPrincipal,
    @Param('id', PathId('esim')) id: string,
  ): Promise<QrCodeResponse> {
    const { install } = await this.esims.getWithInstallData(caller, id);
    const activationCode = toActivationCode(install);
    const { svg, pngBase64 } = await this.qrCodes.draw(caller, activationCode);
    return { activation_code: activationCode, svg, png_base64: pngBase64 };
  }

  @Get(':id/usage')
  @Responds(UsageResponse, {
    summary: 'Get the data usage of an eSIM',
    description:
      'Returns the data used and the data remaining, summed over all plans. `as_of` is the time of the measurement.',
  })
  @NeedsScope('esims:read')
  async getUsage(
    @Caller() caller: PartnerPrincipal,
    @Param('id', PathId('esim')) id: string,
  ): Promise<UsageResponse> {
    return toUsageResponse(await this.esims.getById(caller, id));
  }

  @Get(':id/plans')
  @RespondsPage(EsimPlanResponse, PLANS_PAGE)
  @NeedsScope('esims:read')
  async listEsimPlans(
    @Caller() caller: PartnerPrincipal,
    @Param('id', PathId('esim')) id: string,
    @Query() query: ListQueryDto,
  ): Promise<ListResponse<EsimPlanResponse>> {
    const { page, pooled } = await this.esims.listPlans(caller, id, toListOptions(query));
    return new ListResponse(mapPage(page, toEsimPlanResponse), { pooled });
  }

  @Get(':id/topup-packages')
  @RespondsPage(EsimPackageResponse, {
    summary: 'List the top-up packages that fit an eSIM now, cheapest first',
    description: 'Returns the top-up packages that this eSIM accepts now.',
  })
  @NeedsScope('esims:read')
  async listTopupPackages(
    @Caller() caller: PartnerPrincipal,
    @Param('id', PathId('esim')) id: string,
    @Query() query: ListQueryDto,
  ): Promise<ListResponse<EsimPackageResponse>> {
    const page = await this.esims.listTopupPackages(caller, id, toListOptions(query));
    return new ListResponse(mapPage(page, toPackageResponse));
  }

  private control(
    caller: PartnerPrincipal,
    key: IdempotencyKey,
    id: string,
    action: ControlAction,
    { reason }: ControlEsimDto,
  ): Promise<RenderedResponse> {
    return this.idempotent.execute(key, async (tx) => {
      const esim = await this.changing.request(tx, caller, id, { action, reason: reason ?? null });
      return {
        data: toEsimResponse(await this.esims.showOne(esim, tx.manager)),
        location: `/v1/esims/${id}`,
      };
    });
  }
}
