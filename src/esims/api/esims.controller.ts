import { Controller, Get, Param, Query, UseGuards } from '@nestjs/common';
import { ApiTags } from '@nestjs/swagger';
import { BearerKeyGuard, Caller, PartnerPrincipal } from '../../auth/index.js';
import { type PackageResponse, toPackageResponse } from '../../catalog/index.js';
import { mapPage } from '../../common/page.js';
import { ListAnswer, PathId, toListOptions } from '../../infra/http/index.js';
import { toActivationCode } from '../esim.js';
import { renderQrCode } from '../qr-code.js';
import { ReadEsims } from '../read-esims.js';
import { EsimsQueryDto } from './esim-requests.dto.js';
import {
  type EsimResponse,
  type EsimWithInstallResponse,
  type QrCodeResponse,
  toEsimResponse,
  toEsimWithInstallResponse,
  toUsageResponse,
  type UsageResponse,
} from './esim.response.js';

@ApiTags('eSIMs')
@UseGuards(BearerKeyGuard)
@Controller('v1/esims')
export class EsimsController {
  constructor(private readonly esims: ReadEsims) {}

  @Get()
  async listEsims(@Caller() caller: PartnerPrincipal, @Query() query: EsimsQueryDto): Promise<ListAnswer<EsimResponse>> {
    const filters = { status: query.status, orderId: query.order_id, iccid: query.iccid };
    return new ListAnswer(mapPage(await this.esims.list(caller, filters, toListOptions(query)), toEsimResponse));
  }

  @Get(':id')
  async getEsim(
    @Caller() caller: PartnerPrincipal,
    @Param('id', PathId('esim')) id: string,
  ): Promise<EsimWithInstallResponse> {
    const { esim, install } = await this.esims.getWithInstallData(caller, id);
    return toEsimWithInstallResponse(esim, install);
  }

  @Get(':id/qr')
  async getQrCode(
    @Caller() caller: PartnerPrincipal,
    @Param('id', PathId('esim')) id: string,
  ): Promise<QrCodeResponse> {
    const { install } = await this.esims.getWithInstallData(caller, id);
    const activationCode = toActivationCode(install);
    const { svg, pngBase64 } = await renderQrCode(activationCode);
    return { activation_code: activationCode, svg, png_base64: pngBase64 };
  }

  @Get(':id/usage')
  async getUsage(
    @Caller() caller: PartnerPrincipal,
    @Param('id', PathId('esim')) id: string,
  ): Promise<UsageResponse> {
    return toUsageResponse(await this.esims.getById(caller, id));
  }

  @Get(':id/topup-packages')
  async listTopupPackages(
    @Caller() caller: PartnerPrincipal,
    @Param('id', PathId('esim')) id: string,
  ): Promise<ListAnswer<PackageResponse>> {
    const items = (await this.esims.listTopupPackages(caller, id)).map(toPackageResponse);
    // All that fit one eSIM are a short list: one page.
    return new ListAnswer({ items, hasMore: false, nextCursor: null });
  }
}
