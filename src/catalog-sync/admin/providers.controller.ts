import { Controller, Get, UseGuards } from '@nestjs/common';
import { ApiTags } from '@nestjs/swagger';
import { AuditLog, Author, type ChangeAuthor } from '../../audit/index.js';
import { AdminTokenGuard, NeedsScope } from '../../auth/index.js';
import { ListResponse } from '../../infra/http/index.js';
import { RespondsPage } from '../../infra/http/openapi/responds.js';
import {
  IdempotencyKeyParam,
  type IdempotencyKey,
  IdempotentExecutor,
  IdempotentPost,
  type RenderedResponse,
} from '../../infra/idempotency/index.js';
import { ProviderHealthRepository, ProviderRegistry } from '../../providers/index.js';
import { CatalogSyncsRepository } from '../catalog-syncs.repository.js';
import {
  CatalogSyncResponse,
  ProviderResponse,
  toCatalogSyncResponse,
  toProviderResponse,
} from './providers.response.js';

/** The providers, for the portal team and support (docs/openapi). */
@ApiTags('Wholesalers')
@UseGuards(AdminTokenGuard)
@Controller('internal/v1')
export class ProvidersController {
  constructor(
    private readonly providers: ProviderRegistry,
    private readonly health: ProviderHealthRepository,
    private readonly syncs: CatalogSyncsRepository,
    private readonly audit: AuditLog,
    private readonly idempotent: IdempotentExecutor,
  ) {}

  @Get('providers')
  @RespondsPage(ProviderResponse, {
    summary: 'List the connected wholesalers',
    description: 'Returns the health, the balance and the last catalog synchronization of each wholesaler.',
  })
  @NeedsScope('providers:read')
  async listProviders(): Promise<ListResponse<ProviderResponse>> {
    const health = new Map((await this.health.list()).map((each) => [each.provider, each]));
    const names = this.providers.liveProviders.map(({ name }) => name);
    const errors = await this.syncs.lastErrors(names);
    const items = names.map((name) => toProviderResponse(name, health.get(name), errors.get(name) ?? null));
    return new ListResponse({ items, hasMore: false, nextCursor: null });
  }

  @IdempotentPost('catalog/sync', {
    status: 202,
    response: CatalogSyncResponse,
    summary: 'Synchronize the live catalog now',
    description: 'Starts a synchronization in the background. `GET /internal/v1/providers` shows the result.',
  })
  @NeedsScope('catalog:sync')
  async syncCatalog(
    @Author() by: ChangeAuthor,
    @IdempotencyKeyParam() key: IdempotencyKey,
  ): Promise<RenderedResponse> {
    return this.idempotent.execute(key, async (tx) => {
      const sync = await this.syncs.request(tx);
      await this.audit.record(tx, {
        ...by,
        action: 'catalog.sync_requested',
        partnerId: null,
        subjectId: sync.id,
      });
      return { data: toCatalogSyncResponse(sync) };
    });
  }
}
