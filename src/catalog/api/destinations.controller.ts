import { Controller, Get, Req, Res, UseGuards } from '@nestjs/common';
import { ApiProperty, ApiTags } from '@nestjs/swagger';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { BearerKeyGuard, Caller, NeedsScope, PartnerPrincipal } from '../../auth/index.js';
import type { TenantScope } from '../../common/tenant-scope.js';
import { isNotModified, MoneyResponse, NotModified, SerializedListResponse } from '../../infra/http/index.js';
import { RespondsPage } from '../../infra/http/openapi/responds.js';
import type { CachedCall } from './catalog-page.response.js';
import { type Destination, DESTINATION_KINDS, type DestinationKind, Destinations } from '../destinations.js';

export class DestinationResponse {
  @ApiProperty({
    type: String,
    example: 'JP',
    description: 'A country (ISO 3166-1 alpha-2), a region such as `europe`, or `global`.',
  })
  code!: string;

  @ApiProperty({ enum: DESTINATION_KINDS })
  kind!: DestinationKind;

  @ApiProperty({ type: String, example: 'Japan', description: 'In English.' })
  name!: string;

  @ApiProperty({
    type: 'integer',
    minimum: 1,
    example: 40,
    description: 'Base packages on sale that work there.',
  })
  packages!: number;

  @ApiProperty({
    type: MoneyResponse,
    description: 'The lowest price of these packages, in the currency that most of them have.',
  })
  price_from!: MoneyResponse;

  @ApiProperty({ type: Boolean, example: true })
  has_unlimited!: boolean;

  @ApiProperty({
    type: Boolean,
    example: false,
    description: 'Whether one of them has an allowance per day.',
  })
  has_daily!: boolean;
}

@ApiTags('Catalog')
@UseGuards(BearerKeyGuard)
@Controller('v1/destinations')
export class DestinationsController {
  constructor(private readonly destinations: Destinations) {}

  @Get()
  @RespondsPage(DestinationResponse, {
    summary: 'List the destinations of the packages that this key can sell',
    description:
      'Returns every country, then every region, then `global`, on one page. Each counts the available base packages that GET /v1/catalog lists for `country`, `region` or `type=global`. Send the `ETag` back in `If-None-Match` to get 304 while nothing has changed.',
    cached: true,
  })
  @NeedsScope('catalog:read')
  async listDestinations(
    @Caller() caller: PartnerPrincipal,
    @Req() request: FastifyRequest,
    @Res({ passthrough: true }) reply: FastifyReply,
  ): Promise<SerializedListResponse | NotModified> {
    return respondWithDestinations(this.destinations, caller, { request, reply });
  }
}

/** The destinations of a partner's catalog, for the partner API and the portal. */
export async function respondWithDestinations(
  destinations: Destinations,
  scope: TenantScope,
  { request, reply }: CachedCall,
): Promise<SerializedListResponse | NotModified> {
  const { itemsJson, etag } = await destinations.list(scope, toDestinationResponse);
  if (isNotModified(request, reply, etag)) return new NotModified();
  return new SerializedListResponse(itemsJson, null);
}

function toDestinationResponse(place: Destination): DestinationResponse {
  return {
    code: place.code,
    kind: place.kind,
    name: place.name,
    packages: place.packages,
    price_from: place.priceFrom,
    has_unlimited: place.hasUnlimited,
    has_daily: place.hasDaily,
  };
}
