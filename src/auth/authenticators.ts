import { hash as digest, timingSafeEqual } from 'node:crypto';
import { Inject, Injectable } from '@nestjs/common';
import { AppError } from '../common/errors/index.js';
import { type AdminToken, APP_CONFIG, type AppConfig } from '../config/index.js';
import type { Authenticator, AuthResult, EdgeCall } from '../infra/http/edge/index.js';
import { parseAddress } from '../infra/network/ip-address.js';
import { ApiKeyAuthenticator, type AuthenticatedKey } from './api-key-authenticator.js';
import { AdminPrincipal, PartnerPrincipal } from './principal.js';

const KEY_FORM = /^svc_sk_(?:test|live)_[A-Za-z0-9]{32}$/;
const NO_HEADERS: Readonly<Record<string, string>> = {};

/** Authenticates calls of the partner port: 401, then 403, then 429 (D7, D13, D21). */
@Injectable()
export class PartnerAuthenticator implements Authenticator {
  constructor(private readonly keys: ApiKeyAuthenticator) {}

  async authenticate(call: EdgeCall): Promise<AuthResult> {
    const token = bearerToken(call.rawHeaders);
    // Check the form first, so that a string that cannot be a key costs no statement.
    if (token === null || !KEY_FORM.test(token)) return anonymous();
    const hash = digest('sha256', token, 'buffer');
    const found = await this.keys.authenticate(hash, parseAddress(call.remoteAddress));
    return found ? decide(found) : anonymous();
  }
}

/** One identical 401 for missing, malformed, unknown, revoked and expired keys (D12). */
function anonymous(): AuthResult {
  const refusal = new AppError('unauthorized', { headers: { 'www-authenticate': 'Bearer' } });
  return { principal: null, headers: NO_HEADERS, refusal, keyId: null, partnerId: null, mode: null };
}

function decide({ key, rate }: AuthenticatedKey): AuthResult {
  return {
    principal: new PartnerPrincipal(
      key.partnerId,
      key.partnerName,
      key.mode,
      key.keyId,
      key.scopes,
      key.hasSpendLimit,
    ),
    headers: rate.headers,
    refusal: partnerRefusal({ key, rate }),
    keyId: key.keyId,
    partnerId: key.partnerId,
    mode: key.mode,
  };
}

function partnerRefusal({ key, rate }: AuthenticatedKey): AppError | null {
  if (!key.partnerActive) return new AppError('partner_suspended');
  if (!key.addressAllowed) return new AppError('ip_not_allowed');
  return rate.allowed ? null : new AppError('rate_limited');
}

const ACTOR_FORM = /^[\x20-\x7e]{1,128}$/;

/** Authenticates calls of the admin port by the tokens of `ADMIN_TOKENS`, compared as digests in constant time (D3). */
@Injectable()
export class AdminAuthenticator implements Authenticator {
  constructor(@Inject(APP_CONFIG) private readonly config: Pick<AppConfig, 'adminTokens'>) {}

  async authenticate(call: EdgeCall): Promise<AuthResult> {
    const token = this.findToken(bearerToken(call.rawHeaders));
    const name = token?.name ?? null;
    const actor = call.headers['x-actor'];
    const portalUser = typeof actor === 'string' ? actor : null;
    return Promise.resolve({
      principal: token && new AdminPrincipal(token.name, portalUser, token.scopes),
      headers: {},
      refusal: adminRefusal(name, actor),
      // For the call log, which does not cap a known caller's rows together with those of unknown callers (D38).
      keyId: name === null ? null : `admin:${name}`,
      partnerId: null,
      mode: null,
    });
  }

  private findToken(token: string | null): AdminToken | null {
    if (token === null) return null;
    const hash = digest('sha256', token, 'buffer');
    let found: AdminToken | null = null;
    // Compare every token, so that the duration does not reveal a partial match.
    for (const known of this.config.adminTokens) if (timingSafeEqual(known.sha256, hash)) found = known;
    return found;
  }
}

function adminRefusal(name: string | null, actor: string | string[] | undefined): AppError | null {
  if (name === null)
    return new AppError('unauthorized', {
      detail:
        'A valid admin token is required. Send the header "Authorization: Bearer <token>" once, with a token from ADMIN_TOKENS.',
      headers: { 'www-authenticate': 'Bearer' },
    });
  if (actor === undefined || (typeof actor === 'string' && ACTOR_FORM.test(actor))) return null;
  return new AppError('bad_request', {
    detail: 'The X-Actor header is invalid. Send 1 to 128 printable ASCII characters, or omit it.',
  });
}

/**
 * The token of exactly one `Authorization: Bearer <token>` line (scheme in any case, one space), otherwise null. Reads
 * the raw headers, because Node silently drops a second Authorization line.
 */
function bearerToken(rawHeaders: readonly string[]): string | null {
  let value: string | null = null;
  for (let i = 0; i < rawHeaders.length; i += 2) {
    if (rawHeaders[i]!.length !== 13 || rawHeaders[i]!.toLowerCase() !== 'authorization') continue;
    if (value !== null) return null;
    value = rawHeaders[i + 1]!;
  }
  if (value === null || value.slice(0, 7).toLowerCase() !== 'bearer ') return null;
  const token = value.slice(7);
  return token === '' || token.includes(' ') ? null : token;
}
