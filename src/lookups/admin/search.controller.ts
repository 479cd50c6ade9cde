import { Controller, Get, Injectable, Query, UseGuards } from '@nestjs/common';
import { ApiTags } from '@nestjs/swagger';
import {
  type AdminOrPortalPrincipal,
  AdminTokenGuard,
  Caller,
  NeedsScope,
  PortalSessionGuard,
} from '../../auth/index.js';
import { ListResponse } from '../../infra/http/index.js';
import { RespondsPage } from '../../infra/http/openapi/responds.js';
import { MAX_HITS, Search } from '../search.js';
import { SearchHitResponse, SearchQueryDto, toSearchHitResponse } from './search.dto.js';

/** One search over everything that a person may look for by a short text. */
@Injectable()
abstract class SearchHandlers {
  constructor(private readonly search: Search) {}

  @Get()
  @RespondsPage(SearchHitResponse, {
    summary: 'Search by id, ICCID, reference or request',
    description: `Returns at most ${MAX_HITS} objects in all modes of the session, without the types that its scopes do not include.`,
    on: {
      admin: {
        tag: 'Support',
        summary: 'Search all partners by id, ICCID, reference, request, name or e-mail address',
        description: `Returns at most ${MAX_HITS} objects in both modes, without the types that the scopes of the token do not include.`,
      },
    },
  })
  @NeedsScope('orders:read', 'webhooks:read', 'requests:read', 'partners:read')
  async searchEverything(
    @Caller() caller: AdminOrPortalPrincipal,
    @Query() { q }: SearchQueryDto,
  ): Promise<ListResponse<SearchHitResponse>> {
    const items = (await this.search.find(caller, q.trim())).map(toSearchHitResponse);
    return new ListResponse({ items, hasMore: false, nextCursor: null });
  }
}

@ApiTags('Support')
@UseGuards(AdminTokenGuard)
@Controller('internal/v1/search')
export class SearchController extends SearchHandlers {}

@ApiTags('Search')
@UseGuards(PortalSessionGuard)
@Controller('portal/v1/search')
export class PortalSearchController extends SearchHandlers {}
