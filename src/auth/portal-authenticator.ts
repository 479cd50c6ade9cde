import { hash as digest } from 'node:crypto';
import { Inject, Injectable } from '@nestjs/common';
import { AppError } from '../common/errors/index.js';
import type { AdminScope } from '../common/scopes.js';
import { APP_CONFIG, type AppConfig } from '../config/index.js';
import type { Authenticator, AuthResult, EdgeCall } from '../infra/http/edge/index.js';
import { callerNetwork } from '../infra/network/ip-address.js';
import { GcraThrottlerStorage, toThrottlerLimit } from './gcra-throttler.storage.js';
import { cookieName, readCookie } from './portal-cookie.js';
import { PortalSessionAuthRepository } from './portal-session-auth.repository.js';
import { PortalPrincipal, type PortalSession } from './principal.js';

const CODE_PATH = '/portal/v1/session';
const NOBODY = { principal: null, headers: {}, keyId: null, partnerId: null, mode: null } as const;

/**
 * Id of the session in which a page was opened, because another sign-in may have changed the browser's cookie since.
 */
const SESSION_HEADER = 'x-portal-session';

/**
 * Authenticates calls of the portal by the cookie's session: 401 without one, 403 for a write from another site, 409
 * for a page of another session, then 429 (D7, D50). Only the exchange of a code needs no session.
 */
@Injectable()
export class PortalAuthenticator implements Authenticator {
  private readonly cookie: string;
  private readonly limit: { readonly limit: number; readonly ttl: number };
  private readonly scheme: string;
  /** Scopes that each admin token may currently grant, by token name. */
  private readonly grants: ReadonlyMap<string, readonly AdminScope[]>;

  constructor(
    private readonly sessions: PortalSessionAuthRepository,
    private readonly buckets: GcraThrottlerStorage,
    @Inject(APP_CONFIG) config: Pick<AppConfig, 'portal' | 'adminTokens'>,
  ) {
    this.scheme = config.portal.secure ? 'https:' : 'http:';
    this.grants = new Map(config.adminTokens.map(({ name, scopes }) => [name, scopes]));
    this.cookie = cookieName(config.portal.secure);
    this.limit = toThrottlerLimit(config.portal.rateLimit);
  }

  async authenticate(call: EdgeCall): Promise<AuthResult> {
    const foreign = refuseForeignWrite(call, this.scheme);
    if (foreign || (call.method === 'POST' && pathOf(call) === CODE_PATH))
      return { ...NOBODY, refusal: foreign };
    const token = readCookie(call.headers.cookie, this.cookie);
    if (token === null) return { ...NOBODY, refusal: new AppError('unauthorized', { detail: SIGN_IN }) };
    const session = await this.find(token);
    if (!session) return { ...NOBODY, refusal: new AppError('unauthorized', { detail: SIGN_IN }) };
    const refusal = (await this.charge(`portal:${session.id}`)) ?? refuseOtherPage(call, session);
    // No partner id: portal calls do not appear in a partner's request log.
    // One owner for all sessions of a partner.
    const slotOwner = `portal ${session.partnerId}`;
    return {
      ...NOBODY,
      principal: new PortalPrincipal(session),
      keyId: `portal:${session.id}`,
      slotOwner,
      refusal,
    };
  }

  /** The session of a cookie that was just issued. @throws AppError `unauthorized` when it has already ended */
  async sessionOf(token: string): Promise<PortalSession> {
    const session = await this.find(token);
    if (!session) throw new AppError('unauthorized', { detail: SIGN_IN });
    return session;
  }

  /**
   * The browser's living session when it opens a used link of the same partner, for example the same link twice. Null
   * when the code can still be exchanged: a new link is a new sign-in.
   */
  async resume(code: string, cookies: string | undefined): Promise<PortalSession | null> {
    const codeHash = digest('sha256', code, 'buffer');
    const token = readCookie(cookies, this.cookie);
    if (token === null || (await this.sessions.hasCode(codeHash))) return null;
    const session = await this.find(token);
    return session && (await this.sessions.partnerOfCode(codeHash)) === session.partnerId ? session : null;
  }

  /**
   * The session with its current scopes: at most those that the admin token which created it still has. The session
   * ends when that token is removed from `ADMIN_TOKENS`.
   */
  private async find(token: string): Promise<PortalSession | null> {
    const session = await this.sessions.find(digest('sha256', token, 'buffer'));
    const held = session && this.grants.get(session.mintedBy);
    return held ? { ...session, scopes: session.scopes.filter((scope) => held.includes(scope)) } : null;
  }

  /**
   * Looks a code up before it is exchanged. Only an invalid code is charged to the caller's address, so that people
   * behind the same proxy as an attacker can still sign in.
   * @throws AppError `unauthorized`; `rate_limited` after too many such codes
   */
  async assertCode(code: string, address: string): Promise<void> {
    if (await this.sessions.hasCode(digest('sha256', code, 'buffer'))) return;
    throw (await this.charge(`portal-code:${callerNetwork(address)}`)) ?? codeRefused();
  }

  private async charge(key: string): Promise<AppError | null> {
    const { ttl, limit } = this.limit;
    const { allowed, headers } = await this.buckets.charge(key, ttl, limit);
    return allowed ? null : new AppError('rate_limited', { headers });
  }
}

/** The one refusal for every invalid code. */
export function codeRefused(): AppError {
  const detail =
    'The link is invalid, already used or older than five minutes. Open a new link to the portal.';
  return new AppError('unauthorized', { detail });
}

const SIGN_IN = 'Your session has ended. Sign in again.';

function pathOf({ url }: EdgeCall): string {
  return url.split('?', 1)[0] ?? '';
}

/**
 * Refuses a write from a page of another site. Browsers reveal it in `Sec-Fetch-Site`, older ones by an `Origin` other
 * than this host's. A client that sends neither is not a browser, and no site can make it send the cookie.
 */
function refuseForeignWrite({ method, headers }: EdgeCall, scheme: string): AppError | null {
  if (method === 'GET' || method === 'HEAD') return null;
  const site = headers['sec-fetch-site'];
  const { origin } = headers;
  const isOwn =
    site !== undefined
      ? site === 'same-origin'
      : origin === undefined || isOwnOrigin(origin, scheme, headers.host);
  return isOwn
    ? null
    : new AppError('forbidden', {
        detail: 'The portal accepts changes only from its own pages. Open the portal and try again there.',
      });
}

/**
 * The scheme must be that of `PORTAL_URL`: an attacker who can modify http traffic must not act on the https portal.
 */
function isOwnOrigin(origin: string, scheme: string, host: string | undefined): boolean {
  const own = `${scheme}//${host ?? ''}`;
  return URL.canParse(own) && new URL(own).origin === origin;
}

/** Refuses a page that was opened in another session: it shows, and would change, that session's data. */
function refuseOtherPage({ headers }: EdgeCall, session: PortalSession): AppError | null {
  const opened = headers[SESSION_HEADER];
  return opened === undefined || opened === session.id ? null : new AppError('session_changed');
}
