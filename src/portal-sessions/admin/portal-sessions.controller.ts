import { Body, Controller, Delete, Get, Param, Query, UseGuards } from '@nestjs/common';
import { ApiTags } from '@nestjs/swagger';
import { Author, type ChangeAuthor } from '../../audit/index.js';
import { type AdminPrincipal, AdminTokenGuard, Caller, NeedsScope } from '../../auth/index.js';
import { mapPage } from '../../common/page.js';
import { PORTAL_SCOPES } from '../../common/scopes.js';
import { Transactions } from '../../infra/database/index.js';
import { ListQueryDto, ListResponse, PathId, toListOptions } from '../../infra/http/index.js';
import { Responds, RespondsPage } from '../../infra/http/openapi/responds.js';
import {
  type IdempotencyKey,
  IdempotencyKeyParam,
  IdempotentExecutor,
  IdempotentPost,
  type RenderedResponse,
} from '../../infra/idempotency/index.js';
import { ExistingPartner } from '../../partners/index.js';
import { PortalSessionsRepository } from '../portal-sessions.repository.js';
import { PortalSessionsService } from '../portal-sessions.service.js';
import { CreatePortalSessionDto, toPortalSessionTerms } from './portal-session-requests.dto.js';
import {
  MintedPortalSessionResponse,
  PortalSessionResponse,
  RevokedPortalSessionsResponse,
  toMintedResponse,
  toPortalSessionResponse,
} from './portal-session.response.js';

/** Sessions of the partner portal: the portal team authenticates the user and requests a session (D50). */
@ApiTags('Portal sessions')
@UseGuards(AdminTokenGuard)
@Controller('internal/v1/partners/:pid/portal-sessions')
export class PortalSessionsController {
  constructor(
    private readonly sessions: PortalSessionsService,
    private readonly lists: PortalSessionsRepository,
    private readonly idempotent: IdempotentExecutor,
    private readonly transactions: Transactions,
  ) {}

  @IdempotentPost('/', {
    status: 201,
    response: MintedPortalSessionResponse,
    summary: 'Create a session of the partner portal',
    description:
      'Returns a link with a code that works once within five minutes. Only this response shows the link.',
    refusals: ['partner_suspended'],
  })
  @NeedsScope(...PORTAL_SCOPES)
  async createPortalSession(
    @Author() by: ChangeAuthor,
    @Caller() caller: AdminPrincipal,
    @IdempotencyKeyParam() key: IdempotencyKey,
    @Param('pid', PathId('ptn')) partnerId: string,
    @Body() body: CreatePortalSessionDto,
  ): Promise<RenderedResponse> {
    const terms = toPortalSessionTerms(body);
    return this.idempotent.execute(key, async (tx) => ({
      data: toMintedResponse(await this.sessions.mint(tx, by, caller, partnerId, terms)),
      secretFields: ['url'],
    }));
  }

  @Get()
  @RespondsPage(PortalSessionResponse, {
    summary: "List a partner's portal sessions, newest first",
    description: 'Returns pending, active and ended sessions, without their codes.',
  })
  @NeedsScope('partners:read')
  async listPortalSessions(
    @Param('pid', ExistingPartner) partnerId: string,
    @Query() query: ListQueryDto,
  ): Promise<ListResponse<PortalSessionResponse>> {
    return new ListResponse(
      mapPage(await this.lists.list(partnerId, toListOptions(query)), toPortalSessionResponse),
    );
  }

  @Delete(':id')
  @Responds(PortalSessionResponse, {
    summary: 'End a portal session',
    description:
      'The next call in the session gets 401, in every process. Ending an ended session returns 200.',
  })
  @NeedsScope('partners:write')
  async revokePortalSession(
    @Author() by: ChangeAuthor,
    @Param('pid', PathId('ptn')) partnerId: string,
    @Param('id', PathId('ps')) id: string,
  ): Promise<PortalSessionResponse> {
    return toPortalSessionResponse(
      await this.transactions.run((tx) => this.sessions.revoke(tx, by, partnerId, id)),
    );
  }

  @IdempotentPost('revoke-all', {
    status: 200,
    response: RevokedPortalSessionsResponse,
    summary: 'End all portal sessions of a partner',
    description: 'The next call in each session gets 401, in every process.',
  })
  @NeedsScope('partners:write')
  async revokeAllPortalSessions(
    @Author() by: ChangeAuthor,
    @IdempotencyKeyParam() key: IdempotencyKey,
    @Param('pid', PathId('ptn')) partnerId: string,
  ): Promise<RenderedResponse> {
    return this.idempotent.execute(key, async (tx) => ({
      data: { revoked: await this.sessions.revokeAll(tx, by, partnerId) },
    }));
  }
}
