import { Controller, Get, HttpCode, Post, UseGuards, UseInterceptors } from '@nestjs/common';
import { ApiTags } from '@nestjs/swagger';
import { AuditLog, Author, type ChangeAuthor } from '../../audit/index.js';
import { AdminTokenGuard } from '../../auth/index.js';
import { ListAnswer } from '../../infra/http/index.js';
import { Answers, AnswersPage } from '../../infra/http/openapi/index.js';
import {
  Idempotent,
  type IdempotentCall,
  IdempotencyInterceptor,
  OnceOnly,
  type RenderedAnswer,
} from '../../infra/idempotency/index.js';
import { ProviderHealthRepository, ProviderRegistry } from '../../providers/index.js';
import { CatalogSyncsRepository } from '../catalog-syncs.repository.js';
import {
  CatalogSyncResponse,
  ProviderResponse,
  toCatalogSyncResponse,
  toProviderResponse,
} from './wholesale.response.js';

/** The wholesalers, for the portal team and support (docs/openapi). */
@ApiTags('Wholesalers')
@UseGuards(AdminTokenGuard)
@Controller('internal/v1')
export class WholesaleController {
  constructor(
    private readonly providers: ProviderRegistry,
    private readonly health: ProviderHealthRepository,
    private readonly syncs: CatalogSyncsRepository,
    private readonly audit: AuditLog,
    private readonly onceOnly: OnceOnly,
  ) {}

  @Get('providers')
  @AnswersPage(ProviderResponse, { summary: 'List the wholesalers that are connected, with their health' })
  async listProviders(): Promise<ListAnswer<ProviderResponse>> {
    const health = new Map((await this.health.list()).map((each) => [each.provider, each]));
    const names = this.providers.wholesalers.map(({ name }) => name);
    const errors = await this.syncs.lastErrors(names);
    const items = names.map((name) => toProviderResponse(name, health.get(name), errors.get(name) ?? null));
    return new ListAnswer({ items, hasMore: false, nextCursor: null });
  }

  @Post('catalog/sync')
  @Answers(CatalogSyncResponse, { status: 202, summary: 'Bring the live catalogue up to date now' })
  @HttpCode(202)
  @UseInterceptors(IdempotencyInterceptor)
  async syncCatalog(@Author() by: ChangeAuthor, @Idempotent() call: IdempotentCall): Promise<RenderedAnswer> {
    return this.onceOnly.run(call, async (tx) => {
      const sync = await this.syncs.request(tx);
      await this.audit.record(tx, {
        ...by,
        action: 'catalog.sync_requested',
        partnerId: null,
        subjectId: sync.id,
      });
      return { status: 202, data: toCatalogSyncResponse(sync) };
    });
  }
}
