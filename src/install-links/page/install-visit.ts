import { type CanActivate, createParamDecorator, type ExecutionContext, Injectable } from '@nestjs/common';
import type { FastifyRequest } from 'fastify';
import { GcraThrottlerStorage, toThrottlerLimit } from '../../auth/index.js';
import { AppError, NotFound } from '../../common/errors/index.js';
import { Authenticates } from '../../infra/http/index.js';
import { type Authenticator, type AuthResult, type EdgeCall, pathOf } from '../../infra/http/edge/index.js';
import { callerNetwork } from '../../infra/network/ip-address.js';
import { hashToken, isToken } from '../link-secrets.js';
import { type InstallFacts, InstallPageRepository } from './install-page.repository.js';

const LINK_PATH = /^\/i\/([^/]+)$/;
/** Invalid links that one network may open. They cost a statement each; guessing 256 bits is hopeless anyway. */
const GUESSES = toThrottlerLimit({ perMinute: 60, burst: 60 });
const NOBODY = { principal: null, headers: {}, keyId: null, partnerId: null, mode: null } as const;

/** A visitor with a valid link. */
export class InstallVisit {
  constructor(
    readonly token: string,
    readonly facts: InstallFacts,
  ) {}
}

/** Authenticates a visitor by the token in the path. Everything else gets the same 404 (D63). */
@Injectable()
export class InstallAuthenticator implements Authenticator {
  constructor(
    private readonly links: InstallPageRepository,
    private readonly buckets: GcraThrottlerStorage,
  ) {}

  async authenticate({ url, remoteAddress }: EdgeCall): Promise<AuthResult> {
    const [, token = ''] = LINK_PATH.exec(pathOf(url)) ?? [];
    if (!isToken(token)) return { ...NOBODY, refusal: new NotFound() };
    const facts = await this.links.find(hashToken(token));
    if (!facts) return { ...NOBODY, refusal: await this.refuseGuess(remoteAddress) };
    const { partnerId, mode } = facts;
    return { ...NOBODY, principal: new InstallVisit(token, facts), partnerId, mode, refusal: null };
  }

  /** Only an invalid link is charged, so that travelers behind the same proxy as an attacker still see their page. */
  private async refuseGuess(address: string): Promise<AppError> {
    const { allowed, headers } = await this.buckets.charge(
      `install:${callerNetwork(address)}`,
      GUESSES.ttl,
      GUESSES.limit,
    );
    // The bucket's own headers would tell a guess from a path that is no link at all.
    const retryAfter = headers['retry-after'];
    if (allowed) return new NotFound();
    return new AppError('rate_limited', {
      headers: retryAfter === undefined ? {} : { 'retry-after': retryAfter },
    });
  }
}

/** Asserts that the edge has found the link. */
@Authenticates()
@Injectable()
export class InstallVisitGuard implements CanActivate {
  canActivate(context: ExecutionContext): boolean {
    const { principal } = context.switchToHttp().getRequest<FastifyRequest>();
    if (principal instanceof InstallVisit) return true;
    throw new NotFound();
  }
}

/** Injects the visit into a handler. */
export const Visit = createParamDecorator(
  (_: unknown, context: ExecutionContext): InstallVisit =>
    context.switchToHttp().getRequest<FastifyRequest>().principal as InstallVisit,
);
