import { Controller, Get, Param, Query, Req, Res, UseGuards } from '@nestjs/common';
import { ApiExtraModels, ApiTags, getSchemaPath } from '@nestjs/swagger';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { BearerKeyGuard, Caller, NeedsScope, PartnerPrincipal } from '../../auth/index.js';
import { mapPage } from '../../common/page.js';
import {
  DEFAULT_LIMIT,
  isNotModified,
  ListResponse,
  ListSlots,
  NotModified,
  SerializedListResponse,
  startOfFeed,
  toListOptions,
} from '../../infra/http/index.js';
import { Responds, RespondsPage } from '../../infra/http/openapi/responds.js';
import { CatalogChanges } from '../catalog-changes.js';
import { CatalogList } from '../catalog-list.js';
import { CatalogService } from '../catalog.service.js';
import { CatalogChangeResponse, toCatalogChangeResponse } from './catalog-change.response.js';
import {
  CatalogChangesQueryDto,
  CatalogQueryDto,
  PackageQueryDto,
  toCatalogFilters,
  wantsShelf,
} from './catalog-query.dto.js';
import {
  DroppedPackageResponse,
  EsimPackageResponse,
  ListedPackageResponse,
  toPackageOfDays,
  toPackageResponse,
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
    optional: {
      dropped: {
        type: 'array',
        items: { $ref: getSchemaPath(DroppedPackageResponse) },
        description:
          'Only with `shelf=true`: the other packages on sale of this list, each with a better one.',
      },
    },
  })
  @ApiExtraModels(DroppedPackageResponse)
  @NeedsScope('catalog:read')
  async listPackages(
    @Caller() caller: PartnerPrincipal,
    @Query() query: CatalogQueryDto,
    @Req() request: FastifyRequest,
    @Res({ passthrough: true }) reply: FastifyReply,
  ): Promise<SerializedListResponse | NotModified> {
    const filters = toCatalogFilters(query);
    const page = wantsShelf(query)
      ? { nextCursor: null, ...(await this.list.shelf(caller, filters, toPackageResponse)) }
      : await this.list.list(caller, filters, toListOptions(query), toPackageResponse);
    if (isNotModified(request, reply, page.etag)) return new NotModified();
    return new SerializedListResponse(page.itemsJson, page.nextCursor);
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
    const { item, days, version } = await this.catalog.getPackage(caller, id, query.days ?? null);
    const forDays = days === null ? '' : `-${days}`;
    return isNotModified(request, reply, `W/"${version}-${item.id}${forDays}"`)
      ? new NotModified()
      : toPackageOfDays(item, days);
  }
}
