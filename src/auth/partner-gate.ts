import { hash as digest } from 'node:crypto';
import { Injectable } from '@nestjs/common';
import { AppError } from '../common/errors/index.js';
import type { AuthResult, EdgeCall, Authenticator } from '../infra/http/edge/index.js';
import { parseAddress } from '../infra/network/ip-address.js';
import { bearerToken } from './bearer-token.js';
import { type AuthenticatedKey, ApiKeyAuthenticator } from './key-admissions.js';
import { PartnerPrincipal } from './principal.js';

const KEY_FORM = /^svc_sk_(?:test|live)_[A-Za-z0-9]{32}$/;
const NO_HEADERS: Readonly<Record<string, string>> = {};

/** The edge of the partner port: 401, then 403, then 429 (D7, D12, D13, D21). */
@Injectable()
export class PartnerAuthenticator implements Authenticator {
  constructor(private readonly admissions: ApiKeyAuthenticator) {}

  async authenticate(call: EdgeCall): Promise<AuthResult> {
    const token = bearerToken(call.rawHeaders);
    // The form is checked first: what cannot be a key costs no statement (D12).
    if (token === null || !KEY_FORM.test(token)) return anonymous();
    const hash = digest('sha256', token, 'buffer');
    const admission = await this.admissions.admit(hash, parseAddress(call.remoteAddress));
    return admission ? decide(admission) : anonymous();
  }
}

/** One identical 401 for missing, malformed, unknown, revoked and expired keys (D12). */
function anonymous(): AuthResult {
  const refusal = new AppError('unauthorized', { headers: { 'www-authenticate': 'Bearer' } });
  return { principal: null, headers: NO_HEADERS, refusal, keyId: null, partnerId: null, mode: null };
}

function decide({ key, rate }: AuthenticatedKey): AuthResult {
  return {
    principal: new PartnerPrincipal(key.partnerId, key.partnerName, key.mode, key.keyId),
    headers: rate.headers,
    refusal: refusalOf({ key, rate }),
    keyId: key.keyId,
    partnerId: key.partnerId,
    mode: key.mode,
  };
}

function refusalOf({ key, rate }: AuthenticatedKey): AppError | null {
  if (!key.partnerActive) return new AppError('partner_suspended');
  if (!key.addressAllowed) return new AppError('ip_not_allowed');
  return rate.allowed ? null : new AppError('rate_limited');
}
