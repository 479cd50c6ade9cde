import { Controller, Get, Param, Query, Req, Res, UseGuards } from '@nestjs/common';
import { ApiTags } from '@nestjs/swagger';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { BearerKeyGuard, Caller, PartnerPrincipal } from '../../auth/index.js';
import { isNotModified, NotModified, SerializedListResponse, toListOptions } from '../../infra/http/index.js';
import { Responds, RespondsPage } from '../../infra/http/openapi/responds.js';
import { CatalogList } from '../catalog-list.js';
import { CatalogService } from '../catalog.service.js';
import { CatalogQueryDto, PackageQueryDto, toCatalogFilters } from './catalog-query.dto.js';
import { EsimPackageResponse, toPackageOfDays, toPackageResponse } from './package.response.js';

@ApiTags('Catalog')
@UseGuards(BearerKeyGuard)
@Controller('v1/catalog')
export class CatalogController {
  constructor(
    private readonly list: CatalogList,
    private readonly catalog: CatalogService,
  ) {}

  @Get()
  @RespondsPage(EsimPackageResponse, {
    summary: 'List the packages that this key can sell',
    description:
      'Returns base and top-up packages with their prices. Send the `ETag` back in `If-None-Match` to get 304 while nothing has changed.',
    cached: true,
  })
  async listPackages(
    @Caller() caller: PartnerPrincipal,
    @Query() query: CatalogQueryDto,
    @Req() request: FastifyRequest,
    @Res({ passthrough: true }) reply: FastifyReply,
  ): Promise<SerializedListResponse | NotModified> {
    const page = await this.list.list(
      caller,
      toCatalogFilters(query),
      toListOptions(query),
      toPackageResponse,
    );
    if (isNotModified(request, reply, page.etag)) return new NotModified();
    return new SerializedListResponse(page.itemsJson, page.nextCursor);
  }

  @Get(':package_id')
  @Responds(EsimPackageResponse, {
    summary: 'Get a package',
    description:
      'Returns one package. A withdrawn package stays readable, with `available: false`. For one with `plan.days`, `days` shows price, data and validity of that number of days.',
    cached: true,
  })
  async getPackage(
    @Caller() caller: PartnerPrincipal,
    @Param('package_id') id: string,
    @Query() query: PackageQueryDto,
    @Req() request: FastifyRequest,
    @Res({ passthrough: true }) reply: FastifyReply,
  ): Promise<EsimPackageResponse | NotModified> {
    const { item, days, version } = await this.catalog.getPackage(caller, id, query.days ?? null);
    const forDays = days === null ? '' : `-${days}`;
    return isNotModified(request, reply, `W/"${version}-${item.id}${forDays}"`)
      ? new NotModified()
      : toPackageOfDays(item, days);
  }
}
