import { Controller, Get, Param, UseGuards } from '@nestjs/common';
import { ApiProperty, ApiTags } from '@nestjs/swagger';
import { AdminTokenGuard, NeedsScope } from '../../auth/index.js';
import { NotFound } from '../../common/errors/index.js';
import { Responds } from '../../infra/http/openapi/responds.js';
import { EsimPackageResponse, toPackageResponse } from '../api/package.response.js';
import { CatalogRepository } from '../catalog.repository.js';
import { PACKAGE_ID } from '../catalog.service.js';
import { SALE_NOTE_LENGTH } from '../package.js';
import { type PackageSource, PackageSources } from '../sellable-packages.js';

export class WholesalerCostResponse {
  @ApiProperty({ type: 'integer', example: 600_000, description: 'Millionths of the currency unit.' })
  amount_micros!: number;

  @ApiProperty({ type: String, example: 'USD' })
  currency!: string;
}

/** A live package at the catalog's price, with the facts that partners do not see. */
export class SourcedPackageResponse extends EsimPackageResponse {
  @ApiProperty({ type: String, nullable: true, example: 'esim_access', description: 'The wholesaler.' })
  provider!: string | null;

  @ApiProperty({ type: String, nullable: true, example: 'CKH491', description: "The wholesaler's id." })
  upstream_package_id!: string | null;

  @ApiProperty({ type: () => WholesalerCostResponse, nullable: true })
  cost!: WholesalerCostResponse | null;

  @ApiProperty({
    type: String,
    nullable: true,
    maxLength: SALE_NOTE_LENGTH,
    example: 'Resellers must ensure a minimum retail price of USD 4.50.',
    description: "The wholesaler's conditions for resellers, in its own words.",
  })
  sale_note!: string | null;
}

/** Live packages, for the portal team. */
@ApiTags('Catalog')
@UseGuards(AdminTokenGuard)
@Controller('internal/v1/packages')
export class PackagesController {
  constructor(
    private readonly catalog: CatalogRepository,
    private readonly sources: PackageSources,
  ) {}

  @Get(':package_id')
  @Responds(SourcedPackageResponse, {
    summary: 'Get a live package with its cost',
    description:
      "Returns the package at the catalog's price, with its wholesaler, cost and conditions for resellers (`sale_note`).",
  })
  @NeedsScope('providers:read')
  async getPackage(@Param('package_id') id: string): Promise<SourcedPackageResponse> {
    const item = PACKAGE_ID.test(id) ? await this.catalog.findPackage('live', id) : null;
    if (!item) throw new NotFound('No live package has this id. GET /v1/catalog with a live key lists them.');
    const source = await this.sources.find(id);
    return {
      ...toPackageResponse(item),
      provider: source?.provider ?? null,
      upstream_package_id: source?.upstreamPackageId ?? null,
      cost: toCost(source),
      sale_note: item.terms.saleNote,
    };
  }
}

function toCost(source: PackageSource | null): WholesalerCostResponse | null {
  if (!source?.unitCost) return null;
  const { micros, currency } = source.unitCost;
  return { amount_micros: micros, currency };
}
