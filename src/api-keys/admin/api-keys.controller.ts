import {
  Body,
  Controller,
  Get,
  HttpCode,
  Param,
  Post,
  Query,
  UseGuards,
  UseInterceptors,
} from '@nestjs/common';
import { ApiTags } from '@nestjs/swagger';
import { Author, type ChangeAuthor } from '../../audit/index.js';
import { AdminTokenGuard } from '../../auth/index.js';
import { mapPage } from '../../common/page.js';
import { ListAnswer, PathId, toListOptions } from '../../infra/http/index.js';
import { Answers, AnswersPage, ApiRefusals } from '../../infra/http/openapi/index.js';
import {
  type Answer,
  Idempotent,
  type IdempotentCall,
  IdempotencyInterceptor,
  OnceOnly,
  type RenderedAnswer,
} from '../../infra/idempotency/index.js';
import { FindPartner } from '../../partners/index.js';
import { ApiKeysRepository } from '../api-keys.repository.js';
import { CreateKey } from '../create-key.js';
import type { IssuedKey } from '../key-issuer.js';
import { RevokeKey } from '../revoke-key.js';
import { RotateKey } from '../rotate-key.js';
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
  toApiKeyResponse,
  toIssuedApiKeyResponse,
} from './api-key.response.js';

/** The portal team's administration of a partner's keys (D12, D15). */
@ApiTags('API keys')
@UseGuards(AdminTokenGuard)
@Controller('internal/v1/partners/:pid/api-keys')
export class ApiKeysController {
  constructor(
    private readonly create: CreateKey,
    private readonly revoke: RevokeKey,
    private readonly rotate: RotateKey,
    private readonly partners: FindPartner,
    private readonly keys: ApiKeysRepository,
    private readonly onceOnly: OnceOnly,
  ) {}

  @Post()
  @Answers(IssuedApiKeyResponse, {
    status: 201,
    summary: 'Create an API key; it is shown in this answer only',
  })
  @ApiRefusals('limit_reached')
  @UseInterceptors(IdempotencyInterceptor)
  async createKey(
    @Author() by: ChangeAuthor,
    @Idempotent() call: IdempotentCall,
    @Param('pid', PathId('ptn')) partnerId: string,
    @Body() body: CreateApiKeyDto,
  ): Promise<RenderedAnswer> {
    const terms = toKeyTerms(partnerId, body);
    return this.onceOnly.run(call, async (tx) => shownOnce(201, await this.create.execute(tx, by, terms)));
  }

  @Get()
  @AnswersPage(ApiKeyResponse, { summary: "List a partner's keys, newest first" })
  async listKeys(
    @Param('pid', PathId('ptn')) partnerId: string,
    @Query() query: ApiKeysQueryDto,
  ): Promise<ListAnswer<ApiKeyResponse>> {
    await this.partners.getById(partnerId);
    const page = await this.keys.list(partnerId, query.mode, toListOptions(query));
    return new ListAnswer(mapPage(page, toApiKeyResponse));
  }

  @Post(':id/revoke')
  @Answers(ApiKeyResponse, { summary: 'Revoke a key at once; revoking twice is 200' })
  @HttpCode(200)
  @UseInterceptors(IdempotencyInterceptor)
  async revokeKey(
    @Author() by: ChangeAuthor,
    @Idempotent() call: IdempotentCall,
    @Param('pid', PathId('ptn')) partnerId: string,
    @Param('id', PathId('key')) id: string,
  ): Promise<RenderedAnswer> {
    return this.onceOnly.run(call, async (tx) => ({
      status: 200,
      data: toApiKeyResponse(await this.revoke.execute(tx, by, partnerId, id)),
    }));
  }

  @Post(':id/rotate')
  @Answers(IssuedApiKeyResponse, { summary: 'Replace a key; the old one stays valid for a grace' })
  @ApiRefusals('conflict')
  @HttpCode(200)
  @UseInterceptors(IdempotencyInterceptor)
  async rotateKey(
    @Author() by: ChangeAuthor,
    @Idempotent() call: IdempotentCall,
    @Param('pid', PathId('ptn')) partnerId: string,
    @Param('id', PathId('key')) keyId: string,
    @Body() body: RotateApiKeyDto,
  ): Promise<RenderedAnswer> {
    const graceSeconds = body.grace_seconds ?? DEFAULT_GRACE_SECONDS;
    return this.onceOnly.run(call, async (tx) =>
      shownOnce(200, await this.rotate.execute(tx, by, { partnerId, keyId, graceSeconds })),
    );
  }
}

/** D20: the stored answer, and so every replay of it, has `key: null`. */
function shownOnce(status: number, issued: IssuedKey): Answer {
  return { status, data: toIssuedApiKeyResponse(issued), secretFields: ['key'] };
}
