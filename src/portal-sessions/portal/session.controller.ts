import { Body, Controller, Delete, Get, HttpCode, Inject, Post, Req, Res, UseGuards } from '@nestjs/common';
import { ApiTags } from '@nestjs/swagger';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { Author, type ChangeAuthor } from '../../audit/index.js';
import {
  Caller,
  NeedsScope,
  PortalAuthenticator,
  PortalCodeGuard,
  PortalPrincipal,
  PortalSessionGuard,
  writeCookie,
} from '../../auth/index.js';
import { APP_CONFIG, type AppConfig } from '../../config/index.js';
import { Transactions } from '../../infra/database/index.js';
import { clientAddress } from '../../infra/http/edge/index.js';
import { Responds } from '../../infra/http/openapi/responds.js';
import { NoIdempotencyKey } from '../../infra/idempotency/index.js';
import { PortalSessionsService } from '../portal-sessions.service.js';
import { EndedSessionResponse, ExchangeCodeDto, SessionResponse, toSessionResponse } from './session.dto.js';

/** The browser's session: started with a code, shown, ended (D50). */
@ApiTags('Session')
@Controller('portal/v1/session')
export class SessionController {
  constructor(
    private readonly sessions: PortalSessionsService,
    private readonly authenticator: PortalAuthenticator,
    private readonly transactions: Transactions,
    @Inject(APP_CONFIG) private readonly config: Pick<AppConfig, 'portal' | 'trustProxyHops'>,
  ) {}

  @Post()
  @HttpCode(200)
  @NoIdempotencyKey()
  @UseGuards(PortalCodeGuard)
  @Responds(SessionResponse, {
    summary: 'Start a session with the code of a link',
    description:
      "Sets the session's cookie. A code works once within five minutes. After that it returns the session of the browser, if that session lives and belongs to the same partner.",
    anonymous: true,
  })
  async beginSession(
    @Body() { code }: ExchangeCodeDto,
    @Req() request: FastifyRequest,
    @Res({ passthrough: true }) reply: FastifyReply,
  ): Promise<SessionResponse> {
    const resumed = await this.authenticator.resume(code, request.headers.cookie);
    if (resumed) return toSessionResponse(resumed, this.config.portal);
    await this.authenticator.assertCode(code, clientAddress(request.raw, this.config.trustProxyHops));
    const { token, secondsLeft } = await this.transactions.run((tx) =>
      this.sessions.exchange(tx, code, request.id),
    );
    const session = await this.authenticator.sessionOf(token);
    this.setCookie(reply, token, secondsLeft);
    return toSessionResponse(session, this.config.portal);
  }

  @Get()
  @NeedsScope('any')
  @UseGuards(PortalSessionGuard)
  @Responds(SessionResponse, {
    summary: 'Get the session',
    description: 'Returns the partner, the person, the modes and the scopes of the session.',
  })
  getSession(@Caller() { session }: PortalPrincipal): SessionResponse {
    return toSessionResponse(session, this.config.portal);
  }

  @Delete()
  @NeedsScope('any')
  @UseGuards(PortalSessionGuard)
  @Responds(EndedSessionResponse, {
    summary: 'End the session',
    description: 'Removes the cookie and ends the session in every process.',
  })
  async endSession(
    @Author() by: ChangeAuthor,
    @Caller() { session }: PortalPrincipal,
    @Res({ passthrough: true }) reply: FastifyReply,
  ): Promise<EndedSessionResponse> {
    await this.transactions.run((tx) => this.sessions.revoke(tx, by, session.partnerId, session.id));
    this.setCookie(reply, '', 0);
    return { ended: true };
  }

  private setCookie(reply: FastifyReply, token: string, maxAgeSeconds: number): void {
    const { secure, frameAncestors } = this.config.portal;
    const terms = { secure, framed: frameAncestors.length > 0, maxAgeSeconds };
    void reply.header('set-cookie', writeCookie(token, terms));
  }
}
