import { Controller, Get, Param, Query, UseGuards } from '@nestjs/common';
import { ApiTags } from '@nestjs/swagger';
import { BearerKeyGuard, Caller, NeedsScope, PartnerPrincipal } from '../../auth/index.js';
import { EsimPackageResponse, toPackageResponse } from '../../catalog/index.js';
import { mapPage } from '../../common/page.js';
import { ListQueryDto, ListResponse, PathId, toListOptions } from '../../infra/http/index.js';
import { Responds, RespondsPage } from '../../infra/http/openapi/responds.js';
import { toActivationCode } from '../esim.js';
import { EsimQueries } from '../esim-queries.js';
import {
  EsimPlanResponse,
  EsimResponse,
  EsimsQueryDto,
  EsimWithInstallResponse,
  PLANS_PAGE,
  QrCodeResponse,
  toEsimPlanResponse,
  toEsimResponse,
  toEsimWithInstallResponse,
  toUsageResponse,
  UsageResponse,
} from './esim.dto.js';
import { QrCodes } from '../qr-codes.js';

@ApiTags('Esims')
@UseGuards(BearerKeyGuard)
@Controller('v1/esims')
export class EsimsController {
  constructor(
    private readonly esims: EsimQueries,
    private readonly qrCodes: QrCodes,
  ) {}

  @Get()
  @RespondsPage(EsimResponse, {
    summary: 'List eSIMs, newest first, without install data',
    description: "Returns the eSIMs of the key's mode. Filter them by status, order or ICCID.",
  })
  @NeedsScope('esims:read')
  async listEsims(
    @Caller() caller: PartnerPrincipal,
    @Query() query: EsimsQueryDto,
  ): Promise<ListResponse<EsimResponse>> {
    const filters = { status: query.status, orderId: query.order_id, iccid: query.iccid };
    return new ListResponse(
      mapPage(await this.esims.list(caller, filters, toListOptions(query)), toEsimResponse),
    );
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
    return toEsimWithInstallResponse(esim, install);
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
}
