import { Controller, Get, Param, Query, Req, Res, UseGuards } from '@nestjs/common';
import { ApiExtraModels, ApiTags } from '@nestjs/swagger';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { BearerKeyGuard, Caller, NeedsScope, PartnerPrincipal } from '../../auth/index.js';
import { mapPage } from '../../common/page.js';
import {
  DEFAULT_LIMIT,
  ListResponse,
  ListSlots,
  type NotModified,
  type SerializedListResponse,
  startOfFeed,
} from '../../infra/http/index.js';
import { Responds, RespondsPage } from '../../infra/http/openapi/responds.js';
import { CatalogChanges } from '../catalog-changes.js';
import { CatalogList } from '../catalog-list.js';
import { CatalogService } from '../catalog.service.js';
import { CatalogChangeResponse, toCatalogChangeResponse } from './catalog-change.response.js';
import { respondWithPackage, respondWithPackages } from './catalog-page.response.js';
import { CatalogChangesQueryDto, CatalogQueryDto, PackageQueryDto } from './catalog-query.dto.js';
import {
  DROPPED,
  DroppedPackageResponse,
  EsimPackageResponse,
  ListedPackageResponse,
} from './package.response.js';

@ApiTags('Catalog')
@UseGuards(BearerKeyGuard)
@Controller('v1/catalog')
export class CatalogController {
  constructor(
    private readonly list: CatalogList,
    private readonly catalog: CatalogService,
    private readonly changes: CatalogChanges,
    private readonly slots: ListSlots,
  ) {}

  @Get()
  @RespondsPage(ListedPackageResponse, {
    summary: 'List the packages that this key can sell',
    description:
      'Returns base and top-up packages with their prices. Send the `ETag` back in `If-None-Match` to get 304 while nothing has changed.',
    cached: true,
    optional: DROPPED,
  })
  @ApiExtraModels(DroppedPackageResponse)
  @NeedsScope('catalog:read')
  async listPackages(
    @Caller() caller: PartnerPrincipal,
    @Query() query: CatalogQueryDto,
    @Req() request: FastifyRequest,
    @Res({ passthrough: true }) reply: FastifyReply,
  ): Promise<SerializedListResponse | NotModified> {
    return respondWithPackages(this.list, caller, query, { request, reply });
  }

  @Get('changes')
  @RespondsPage(CatalogChangeResponse, {
    summary: 'List changes of the catalog, oldest first',
    description:
      'Returns the changes of the last 30 days, also of packages that are no longer on sale. The list has no last page: send `next_cursor` as `after` to get newer changes, and fetch each changed package. An `after` that is older than 30 days gets 400 `invalid_cursor`. A call that finds only changes of the last seconds waits up to two seconds until every server shows them.',
    endless: 'bKdzq0yX3Hj5Wc1mVb8TRVsxMiwifiJd',
  })
  @NeedsScope('catalog:read')
  async listCatalogChanges(
    @Caller() caller: PartnerPrincipal,
    @Query() query: CatalogChangesQueryDto,
    @Req() request: FastifyRequest,
  ): Promise<ListResponse<CatalogChangeResponse>> {
    const after = startOfFeed(query);
    await this.changes.settle(caller, after);
    const limit = query.limit ?? DEFAULT_LIMIT;
    const page = await this.slots.read(request, () => this.changes.list(caller, after, limit));
    return new ListResponse(mapPage(page, toCatalogChangeResponse));
  }

  @Get(':package_id')
  @Responds(EsimPackageResponse, {
    summary: 'Get a package',
    description:
      'Returns one package. A withdrawn package stays readable, with `available: false`. For one with `plan.days`, `days` shows price, data and validity of that number of days.',
    cached: true,
  })
  @NeedsScope('catalog:read')
  async getPackage(
    @Caller() caller: PartnerPrincipal,
    @Param('package_id') id: string,
    @Query() query: PackageQueryDto,
    @Req() request: FastifyRequest,
    @Res({ passthrough: true }) reply: FastifyReply,
  ): Promise<EsimPackageResponse | NotModified> {
    return respondWithPackage(this.catalog, caller, id, query, { request, reply });
  }
}
