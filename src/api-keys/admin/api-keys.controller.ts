import { Body, Controller, Get, Param, Query, UseGuards } from '@nestjs/common';
import { ApiTags } from '@nestjs/swagger';
import { Author, type ChangeAuthor } from '../../audit/index.js';
import { AdminTokenGuard, NeedsScope } from '../../auth/index.js';
import { ListResponse, PathId, toListOptions } from '../../infra/http/index.js';
import { RespondsPage } from '../../infra/http/openapi/responds.js';
import {
  IdempotencyKeyParam,
  type IdempotencyKey,
  IdempotentExecutor,
  IdempotentPost,
  type RenderedResponse,
} from '../../infra/idempotency/index.js';
import { PartnersService } from '../../partners/index.js';
import { ApiKeysService } from '../api-keys.service.js';
import {
  ApiKeysQueryDto,
  CreateApiKeyDto,
  DEFAULT_GRACE_SECONDS,
  RotateApiKeyDto,
  toKeyTerms,
} from './api-key-requests.dto.js';
import {
  ApiKeyResponse,
  IssuedApiKeyResponse,
  toApiKeyPage,
  toApiKeyResponse,
  toShownOnce,
} from './api-key.response.js';

/** The portal team's administration of a partner's keys (D12, D15). */
@ApiTags('API keys')
@UseGuards(AdminTokenGuard)
@Controller('internal/v1/partners/:pid/api-keys')
export class ApiKeysController {
  constructor(
    private readonly keys: ApiKeysService,
    private readonly partners: PartnersService,
    private readonly idempotent: IdempotentExecutor,
  ) {}

  @IdempotentPost('/', {
    status: 201,
    response: IssuedApiKeyResponse,
    summary: 'Create an API key',
    description: 'Only this answer shows the key.',
    refusals: ['limit_reached'],
  })
  @NeedsScope('keys:write')
  async createKey(
    @Author() by: ChangeAuthor,
    @IdempotencyKeyParam() key: IdempotencyKey,
    @Param('pid', PathId('ptn')) partnerId: string,
    @Body() body: CreateApiKeyDto,
  ): Promise<RenderedResponse> {
    const terms = toKeyTerms(partnerId, body);
    return this.idempotent.execute(key, async (tx) => toShownOnce(await this.keys.create(tx, by, terms)));
  }

  @Get()
  @RespondsPage(ApiKeyResponse, {
    summary: "List a partner's keys, newest first",
    description:
      'Returns active, replaced, expired and revoked keys, each with its prefix and last four characters.',
  })
  @NeedsScope('keys:read')
  async listKeys(
    @Param('pid', PathId('ptn')) partnerId: string,
    @Query() query: ApiKeysQueryDto,
  ): Promise<ListResponse<ApiKeyResponse>> {
    await this.partners.getById(partnerId);
    return new ListResponse(toApiKeyPage(await this.keys.list(partnerId, query.mode, toListOptions(query))));
  }

  @IdempotentPost(':id/revoke', {
    status: 200,
    response: ApiKeyResponse,
    summary: 'Revoke a key',
    description: 'Calls with the key get 401, from the next one on. Revoking it twice is 200.',
  })
  @NeedsScope('keys:write')
  async revokeKey(
    @Author() by: ChangeAuthor,
    @IdempotencyKeyParam() key: IdempotencyKey,
    @Param('pid', PathId('ptn')) partnerId: string,
    @Param('id', PathId('key')) id: string,
  ): Promise<RenderedResponse> {
    return this.idempotent.execute(key, async (tx) => ({
      data: toApiKeyResponse(await this.keys.revoke(tx, by, partnerId, id)),
    }));
  }

  @IdempotentPost(':id/rotate', {
    status: 200,
    response: IssuedApiKeyResponse,
    summary: 'Replace a key',
    description:
      'Returns the new key, which only this answer shows. The old key stays valid for `grace_seconds`. A key that it had replaced ends at once.',
    refusals: ['conflict'],
  })
  @NeedsScope('keys:write')
  async rotateKey(
    @Author() by: ChangeAuthor,
    @IdempotencyKeyParam() key: IdempotencyKey,
    @Param('pid', PathId('ptn')) partnerId: string,
    @Param('id', PathId('key')) keyId: string,
    @Body() body: RotateApiKeyDto,
  ): Promise<RenderedResponse> {
    const graceSeconds = body.grace_seconds ?? DEFAULT_GRACE_SECONDS;
    return this.idempotent.execute(key, async (tx) =>
      toShownOnce(await this.keys.rotate(tx, by, { partnerId, keyId, graceSeconds })),
    );
  }
}
