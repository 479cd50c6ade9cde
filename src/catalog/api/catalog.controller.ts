import { Controller, Get, Param, Query, Req, Res, UseGuards } from '@nestjs/common';
import { ApiTags } from '@nestjs/swagger';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { BearerKeyGuard, Caller, PartnerPrincipal } from '../../auth/index.js';
import { isNotModified, NotModified, SerializedListResponse, toListOptions } from '../../infra/http/index.js';
import { Responds, RespondsPage } from '../../infra/http/openapi/responds.js';
import { CatalogList } from '../catalog-list.js';
import { CatalogService } from '../catalog.service.js';
import { CatalogQueryDto, toCatalogFilters } from './catalog-query.dto.js';
import { EsimPackageResponse, toPackageResponse } from './package.response.js';

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
    description: 'Returns one package. A withdrawn package stays readable, with `available: false`.',
    cached: true,
  })
  async getPackage(
    @Caller() caller: PartnerPrincipal,
    @Param('package_id') id: string,
    @Req() request: FastifyRequest,
    @Res({ passthrough: true }) reply: FastifyReply,
  ): Promise<EsimPackageResponse | NotModified> {
    const { item, version } = await this.catalog.getPackage(caller, id);
    return isNotModified(request, reply, `W/"${version}-${item.id}"`)
      ? new NotModified()
      : toPackageResponse(item);
  }
}
