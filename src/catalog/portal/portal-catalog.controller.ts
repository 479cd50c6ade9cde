import { Controller, Get, Param, Query, Req, Res, UseGuards } from '@nestjs/common';
import { ApiExtraModels, ApiTags } from '@nestjs/swagger';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { Caller, NeedsScope, PortalPrincipal, PortalSessionGuard } from '../../auth/index.js';
import type { Mode } from '../../common/mode.js';
import { type NotModified, PortalMode, type SerializedListResponse } from '../../infra/http/index.js';
import { Responds, RespondsPage } from '../../infra/http/openapi/responds.js';
import { respondWithPackage, respondWithPackages } from '../api/catalog-page.response.js';
import { CatalogQueryDto, PackageQueryDto } from '../api/catalog-query.dto.js';
import { DestinationResponse, respondWithDestinations } from '../api/destinations.controller.js';
import {
  DROPPED,
  DroppedPackageResponse,
  EsimPackageResponse,
  ListedPackageResponse,
} from '../api/package.response.js';
import { CatalogList } from '../catalog-list.js';
import { CatalogService } from '../catalog.service.js';
import { Destinations } from '../destinations.js';

export class PortalCatalogQueryDto extends CatalogQueryDto {
  @PortalMode()
  mode?: Mode | null;
}

export class PortalPackageQueryDto extends PackageQueryDto {
  @PortalMode()
  mode?: Mode | null;
}

export class PortalDestinationsQueryDto {
  @PortalMode()
  mode?: Mode | null;
}

/** The packages that a partner can sell, in the portal. */
@ApiTags('Catalog')
@UseGuards(PortalSessionGuard)
@Controller('portal/v1')
export class PortalCatalogController {
  constructor(
    private readonly list: CatalogList,
    private readonly catalog: CatalogService,
    private readonly destinations: Destinations,
  ) {}

  @Get('catalog')
  @NeedsScope('catalog:read')
  @RespondsPage(ListedPackageResponse, {
    summary: 'List the packages on sale in a mode',
    description: "Returns base and top-up packages with the partner's prices, as the partner API lists them.",
    cached: true,
    optional: DROPPED,
  })
  @ApiExtraModels(DroppedPackageResponse)
  async listPackages(
    @Caller() caller: PortalPrincipal,
    @Query() query: PortalCatalogQueryDto,
    @Req() request: FastifyRequest,
    @Res({ passthrough: true }) reply: FastifyReply,
  ): Promise<SerializedListResponse | NotModified> {
    return respondWithPackages(this.list, caller.inMode(query), query, { request, reply });
  }

  @Get('catalog/:package_id')
  @NeedsScope('catalog:read')
  @Responds(EsimPackageResponse, {
    summary: 'Get a package',
    description: 'Returns one package, as the partner API shows it.',
    cached: true,
  })
  async getPackage(
    @Caller() caller: PortalPrincipal,
    @Param('package_id') id: string,
    @Query() query: PortalPackageQueryDto,
    @Req() request: FastifyRequest,
    @Res({ passthrough: true }) reply: FastifyReply,
  ): Promise<EsimPackageResponse | NotModified> {
    return respondWithPackage(this.catalog, caller.inMode(query), id, query, { request, reply });
  }

  @Get('destinations')
  @NeedsScope('catalog:read')
  @RespondsPage(DestinationResponse, {
    summary: 'List the destinations of the packages on sale in a mode',
    description: 'Returns every country, then every region, then `global`, on one page.',
    cached: true,
  })
  async listDestinations(
    @Caller() caller: PortalPrincipal,
    @Query() query: PortalDestinationsQueryDto,
    @Req() request: FastifyRequest,
    @Res({ passthrough: true }) reply: FastifyReply,
  ): Promise<SerializedListResponse | NotModified> {
    return respondWithDestinations(this.destinations, caller.inMode(query), { request, reply });
  }
}
