import { Body, Controller, Get, Param, Query, UseGuards } from '@nestjs/common';
import { ApiTags } from '@nestjs/swagger';
import { Author, type ChangeAuthor } from '../../audit/index.js';
import { Caller, NeedsScope, PortalPrincipal, PortalSessionGuard } from '../../auth/index.js';
import type { Tx } from '../../infra/database/index.js';
import { ListResponse, PathId, toListOptions } from '../../infra/http/index.js';
import { RespondsPage } from '../../infra/http/openapi/responds.js';
import {
  type IdempotencyKey,
  IdempotencyKeyParam,
  IdempotentExecutor,
  IdempotentPost,
  type RenderedResponse,
} from '../../infra/idempotency/index.js';
import {
  ApiKeysQueryDto,
  CreateApiKeyDto,
  DEFAULT_GRACE_SECONDS,
  RotateApiKeyDto,
  toKeyTerms,
} from '../admin/api-key-requests.dto.js';
import {
  ApiKeyResponse,
  IssuedApiKeyResponse,
  toApiKeyPage,
  toApiKeyResponse,
  toShownOnce,
} from '../admin/api-key.response.js';
import type { ApiKeyEntity } from '../api-key.entity.js';
import { ApiKeysService } from '../api-keys.service.js';

/** Developers > API Keys (spec section 2). */
@ApiTags('API keys')
@UseGuards(PortalSessionGuard)
@Controller('portal/v1/api-keys')
export class PortalApiKeysController {
  constructor(
    private readonly keys: ApiKeysService,
    private readonly idempotent: IdempotentExecutor,
  ) {}

  @Get()
  @NeedsScope('keys:read')
  @RespondsPage(ApiKeyResponse, {
    summary: 'List the API keys of a mode, newest first',
    description:
      'Returns active, replaced, expired and revoked keys, each with its prefix and last four characters.',
  })
  async listKeys(
    @Caller() caller: PortalPrincipal,
    @Query() query: ApiKeysQueryDto,
  ): Promise<ListResponse<ApiKeyResponse>> {
    const { partnerId, mode } = caller.inMode(query);
    return new ListResponse(toApiKeyPage(await this.keys.list(partnerId, mode, toListOptions(query))));
  }

  @IdempotentPost('/', {
    status: 201,
    response: IssuedApiKeyResponse,
    summary: 'Create an API key',
    description: 'Only this answer shows the key. A live key needs a session younger than 15 minutes.',
    refusals: ['limit_reached', 'step_up_required'],
  })
  @NeedsScope('keys:write')
  async createKey(
    @Author() by: ChangeAuthor,
    @Caller() caller: PortalPrincipal,
    @IdempotencyKeyParam() key: IdempotencyKey,
    @Body() body: CreateApiKeyDto,
  ): Promise<RenderedResponse> {
    const mode = caller.chosenMode(body.mode);
    const terms = toKeyTerms(caller.partnerId, body);
    return this.idempotent.execute(key, async (tx) => {
      // It spends money, and outlives the session.
      if (mode === 'live') caller.assertYoung();
      return toShownOnce(await this.keys.create(tx, by, terms));
    });
  }

  @IdempotentPost(':id/revoke', {
    status: 200,
    response: ApiKeyResponse,
    summary: 'Revoke a key',
    description:
      'Calls with the key get 401, from the next one on. A live key needs a session younger than 15 minutes.',
    refusals: ['step_up_required'],
  })
  @NeedsScope('keys:write')
  async revokeKey(
    @Author() by: ChangeAuthor,
    @Caller() caller: PortalPrincipal,
    @IdempotencyKeyParam() key: IdempotencyKey,
    @Param('id', PathId('key')) id: string,
  ): Promise<RenderedResponse> {
    return this.idempotent.execute(key, async (tx) => {
      if ((await this.seen(tx, caller, id)).mode === 'live') caller.assertYoung();
      return { data: toApiKeyResponse(await this.keys.revoke(tx, by, caller.partnerId, id)) };
    });
  }

  @IdempotentPost(':id/rotate', {
    status: 200,
    response: IssuedApiKeyResponse,
    summary: 'Replace a key',
    description:
      'Returns the new key, which only this answer shows. A key that the old one had replaced ends at once. A live key needs a session younger than 15 minutes.',
    refusals: ['conflict', 'step_up_required'],
  })
  @NeedsScope('keys:write')
  async rotateKey(
    @Author() by: ChangeAuthor,
    @Caller() caller: PortalPrincipal,
    @IdempotencyKeyParam() key: IdempotencyKey,
    @Param('id', PathId('key')) keyId: string,
    @Body() body?: RotateApiKeyDto,
  ): Promise<RenderedResponse> {
    const graceSeconds = body?.grace_seconds ?? DEFAULT_GRACE_SECONDS;
    const { partnerId } = caller;
    return this.idempotent.execute(key, async (tx) => {
      // Its answer is a new live key, whatever becomes of the old one.
      if ((await this.seen(tx, caller, keyId)).mode === 'live') caller.assertYoung();
      return toShownOnce(await this.keys.rotate(tx, by, { partnerId, keyId, graceSeconds }));
    });
  }

  /** @throws NotFound for another partner's key, and for one of a mode that the session does not allow */
  private async seen(tx: Tx, caller: PortalPrincipal, id: string): Promise<ApiKeyEntity> {
    const key = await this.keys.getById(tx, caller.partnerId, id);
    caller.assertSees(key.mode);
    return key;
  }
}
