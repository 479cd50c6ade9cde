import { Body, Controller, Get, Injectable, Param, Query, UseGuards } from '@nestjs/common';
import { ApiTags } from '@nestjs/swagger';
import { Author, type ChangeAuthor } from '../../audit/index.js';
import {
  type AdminOrPortalPrincipal,
  AdminTokenGuard,
  Caller,
  NeedsScope,
  PartnerId,
  PortalSessionGuard,
} from '../../auth/index.js';
import type { Tx } from '../../infra/database/index.js';
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

/** A partner's keys, for the portal team and the partner's own users (D12, D15). */
@Injectable()
abstract class ApiKeyHandlers {
  constructor(
    private readonly keys: ApiKeysService,
    private readonly partners: PartnersService,
    private readonly idempotent: IdempotentExecutor,
  ) {}

  @IdempotentPost('/', {
    status: 201,
    response: IssuedApiKeyResponse,
    summary: 'Create an API key',
    description:
      'Only this response shows the key. `scopes` and `spend_limit` restrict it; neither can be changed later.',
    on: {
      portal: {
        description:
          'Only this response shows the key. `scopes` and `spend_limit` restrict it; neither can be changed later. A live key needs a session younger than 15 minutes.',
      },
    },
    refusals: ['limit_reached', 'step_up_required'],
  })
  @NeedsScope('keys:write')
  async createKey(
    @Author() by: ChangeAuthor,
    @Caller() caller: AdminOrPortalPrincipal,
    @IdempotencyKeyParam() key: IdempotencyKey,
    @PartnerId() partnerId: string,
    @Body() body: CreateApiKeyDto,
  ): Promise<RenderedResponse> {
    const mode = caller.chosenMode(body.mode);
    const terms = toKeyTerms(partnerId, body);
    return this.idempotent.execute(key, async (tx) => {
      // A live key spends money, and outlives the session.
      if (mode === 'live') caller.assertYoung();
      return toShownOnce(await this.keys.create(tx, by, terms));
    });
  }

  @Get()
  @RespondsPage(ApiKeyResponse, {
    summary: "List a partner's keys, newest first",
    description:
      'Returns active, replaced, expired and revoked keys, each with its prefix and last four characters.',
    on: {
      portal: { summary: 'List the API keys of a mode (by default Live or the only one), newest first' },
    },
  })
  @NeedsScope('keys:read')
  async listKeys(
    @Caller() caller: AdminOrPortalPrincipal,
    @PartnerId() partnerId: string,
    @Query() query: ApiKeysQueryDto,
  ): Promise<ListResponse<ApiKeyResponse>> {
    const mode = caller.chosenMode(query.mode);
    await this.partners.getById(partnerId);
    return new ListResponse(toApiKeyPage(await this.keys.list(partnerId, mode, toListOptions(query))));
  }

  @IdempotentPost(':id/revoke', {
    status: 200,
    response: ApiKeyResponse,
    summary: 'Revoke a key',
    description: 'The next call with the key gets 401. Revoking a revoked key returns 200.',
    on: {
      portal: {
        description:
          'The next call with the key gets 401. A live key needs a session younger than 15 minutes.',
      },
    },
    refusals: ['step_up_required'],
  })
  @NeedsScope('keys:write')
  async revokeKey(
    @Author() by: ChangeAuthor,
    @Caller() caller: AdminOrPortalPrincipal,
    @IdempotencyKeyParam() key: IdempotencyKey,
    @PartnerId() partnerId: string,
    @Param('id', PathId('key')) id: string,
  ): Promise<RenderedResponse> {
    return this.idempotent.execute(key, async (tx) => {
      await this.assertMayChange(tx, caller, partnerId, id);
      return { data: toApiKeyResponse(await this.keys.revoke(tx, by, partnerId, id)) };
    });
  }

  @IdempotentPost(':id/rotate', {
    status: 200,
    response: IssuedApiKeyResponse,
    summary: 'Replace a key',
    description:
      'Returns the new key, which only this response shows. It has the same restrictions. The old key stays valid for `grace_seconds`. An older key in its grace period expires immediately.',
    on: {
      portal: {
        description:
          'Returns the new key, which only this response shows. It has the same restrictions. An older key in its grace period expires immediately. A live key needs a session younger than 15 minutes.',
      },
    },
    refusals: ['conflict', 'step_up_required'],
  })
  @NeedsScope('keys:write')
  async rotateKey(
    @Author() by: ChangeAuthor,
    @Caller() caller: AdminOrPortalPrincipal,
    @IdempotencyKeyParam() key: IdempotencyKey,
    @PartnerId() partnerId: string,
    @Param('id', PathId('key')) keyId: string,
    @Body() body?: RotateApiKeyDto,
  ): Promise<RenderedResponse> {
    const graceSeconds = body?.grace_seconds ?? DEFAULT_GRACE_SECONDS;
    return this.idempotent.execute(key, async (tx) => {
      // The result is a new live key, whatever happens to the old one.
      await this.assertMayChange(tx, caller, partnerId, keyId);
      return toShownOnce(await this.keys.rotate(tx, by, { partnerId, keyId, graceSeconds }));
    });
  }

  /**
   * @throws NotFound for a key in a mode that the session does not include; AppError `step_up_required` for a live key
   * if the session is too old
   */
  private async assertMayChange(
    tx: Tx,
    caller: AdminOrPortalPrincipal,
    partnerId: string,
    id: string,
  ): Promise<void> {
    const { mode } = await this.keys.getById(tx, partnerId, id);
    caller.assertSees(mode);
    if (mode === 'live') caller.assertYoung();
  }
}

@ApiTags('API keys')
@UseGuards(AdminTokenGuard)
@Controller('internal/v1/partners/:pid/api-keys')
export class ApiKeysController extends ApiKeyHandlers {}

@ApiTags('API keys')
@UseGuards(PortalSessionGuard)
@Controller('portal/v1/api-keys')
export class PortalApiKeysController extends ApiKeyHandlers {}
