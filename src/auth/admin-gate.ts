import { createHash, timingSafeEqual } from 'node:crypto';
import { Inject, Injectable } from '@nestjs/common';
import { AppError } from '../common/errors/index.js';
import { APP_CONFIG, type AppConfig } from '../config/index.js';
import type { AuthResult, EdgeCall, Authenticator } from '../infra/http/edge/index.js';
import { bearerToken } from './bearer-token.js';
import { AdminPrincipal } from './principal.js';

const ACTOR_FORM = /^[\x20-\x7e]{1,128}$/;

/** The edge of the admin port: a token of `ADMIN_TOKENS`, compared as digests in constant time (api.md). */
@Injectable()
export class AdminAuthenticator implements Authenticator {
  constructor(@Inject(APP_CONFIG) private readonly config: Pick<AppConfig, 'adminTokens'>) {}

  async authenticate(call: EdgeCall): Promise<AuthResult> {
    const name = this.tokenName(bearerToken(call.rawHeaders));
    const actor = call.headers['x-actor'];
    return Promise.resolve({
      principal: name === null ? null : new AdminPrincipal(name, typeof actor === 'string' ? actor : null),
      headers: {},
      refusal: refusalOf(name, actor),
      // For the call log: a known caller, whose rows are not capped with those of strangers (D38).
      keyId: name === null ? null : `admin:${name}`,
      partnerId: null,
      mode: null,
    });
  }

  private tokenName(token: string | null): string | null {
    if (token === null) return null;
    const digest = createHash('sha256').update(token).digest();
    let found: string | null = null;
    // Every token is compared, so that the time taken does not tell which one came close.
    for (const known of this.config.adminTokens)
      if (timingSafeEqual(known.sha256, digest)) found = known.name;
    return found;
  }
}

function refusalOf(name: string | null, actor: string | string[] | undefined): AppError | null {
  if (name === null) return new AppError('unauthorized', { headers: { 'www-authenticate': 'Bearer' } });
  if (actor === undefined || (typeof actor === 'string' && ACTOR_FORM.test(actor))) return null;
  return new AppError('bad_request', { detail: 'X-Actor must be 1 to 128 printable ASCII characters.' });
}
