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

/** The session that a page was opened in, by its id: another link may have changed the browser's cookie since. */
const SESSION_HEADER = 'x-portal-session';

/**
 * Who calls the portal: the session of the cookie, 401 without one, 403 for a write that another site has sent, 409 for
 * a page of another session, then 429 (D7, D50). Only the exchange of a code needs no session.
 */
@Injectable()
export class PortalAuthenticator implements Authenticator {
  private readonly cookie: string;
  private readonly limit: { readonly limit: number; readonly ttl: number };
  private readonly scheme: string;
  /** What each admin token may give now, by its name. */
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
    // No partner: the portal's own calls are not among those that a partner finds in its request log.
    // However many sessions a partner has.
    const slotOwner = `portal ${session.partnerId}`;
    return {
      ...NOBODY,
      principal: new PortalPrincipal(session),
      keyId: `portal:${session.id}`,
      slotOwner,
      refusal,
    };
  }

  /** The session of a cookie that was given out a moment ago. @throws AppError `unauthorized` when it has ended meanwhile */
  async sessionOf(token: string): Promise<PortalSession> {
    const session = await this.find(token);
    if (!session) throw new AppError('unauthorized', { detail: SIGN_IN });
    return session;
  }

  /**
   * What the session may do now: never more than its minter, whose scopes may have become fewer since. It ends with the
   * removal of that token from `ADMIN_TOKENS`.
   */
  private async find(token: string): Promise<PortalSession | null> {
    const session = await this.sessions.find(digest('sha256', token, 'buffer'));
    const held = session && this.grants.get(session.mintedBy);
    return held ? { ...session, scopes: session.scopes.filter((scope) => held.includes(scope)) } : null;
  }

  /**
   * Looks a code up before it is exchanged. Only a code that does not work is charged to the caller's address: people
   * behind the same proxy as somebody who guesses still sign in.
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

/** The one refusal of every code that does not work. */
export function codeRefused(): AppError {
  const detail = 'The code is unknown, spent or older than five minutes. Open a new link to the portal.';
  return new AppError('unauthorized', { detail });
}

const SIGN_IN = 'There is no session, or it has ended: sign in again.';

function pathOf({ url }: EdgeCall): string {
  return url.split('?', 1)[0] ?? '';
}

/**
 * A write that a page of another site has sent: browsers say so in `Sec-Fetch-Site`, older ones by an `Origin` that is
 * not this host's. Who sends neither is no browser, and nobody can make it send the cookie.
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
        detail:
          'The portal takes changes from its own pages only. Open the portal itself, and try again there.',
      });
}

/** The scheme is that of `PORTAL_URL`: whoever may change what goes over http must not act on the https portal. */
function isOwnOrigin(origin: string, scheme: string, host: string | undefined): boolean {
  const own = `${scheme}//${host ?? ''}`;
  return URL.canParse(own) && new URL(own).origin === origin;
}

/** A page that was opened in another session shows, and would change, what is not this session's. */
function refuseOtherPage({ headers }: EdgeCall, session: PortalSession): AppError | null {
  const opened = headers[SESSION_HEADER];
  return opened === undefined || opened === session.id ? null : new AppError('session_changed');
}
