import { createHash, timingSafeEqual } from 'node:crypto';
import type { Logger } from 'pino';
import { AppError, NotFound } from '../../common/errors/index.js';
import { type Authenticator, type AuthResult, type EdgeCall, pathOf } from '../../infra/http/edge/index.js';
import { NetworkList } from '../../infra/network/ip-address.js';
import type { ProviderHint } from '../../providers/index.js';

const PATH = /^\/callbacks\/([a-z0-9_-]{1,64})\/([A-Za-z0-9_-]{1,256})$/;
/** Used for a malformed path, so that the comparison takes the same time and never matches. */
const NO_MATCH = ['', '', ''] as const;

/** The provider that sends a callback. */
export class CallbackSender {
  /** The kinds of the stored hints, for the log. */
  hints: readonly ProviderHint['about'][] = [];

  constructor(readonly provider: string) {}
}

/** Takes a token of the provider's bucket for this address. Returns null on success, otherwise the seconds to wait. */
export type CallbackRateLimit = (provider: string, address: string) => Promise<number | null>;

export interface CallbackAuthenticatorOptions {
  readonly secret: string;
  /** Empty: every address may send. */
  readonly allowedCidrs: readonly string[];
  /** Whether a provider of that name is connected. */
  knows(provider: string): boolean;
  readonly limit: CallbackRateLimit;
  readonly logger: Logger;
}

/**
 * Authenticates a provider's callback: it comes from an allowed address, has the secret and names a connected provider.
 * Without these, every path and method gets the same 404 (D3).
 */
export class CallbackAuthenticator implements Authenticator {
  private readonly secret: Buffer;
  private readonly senders: NetworkList | null;

  constructor(private readonly options: CallbackAuthenticatorOptions) {
    const { secret, allowedCidrs } = options;
    this.secret = digestOf(secret);
    this.senders = allowedCidrs.length > 0 ? new NetworkList(allowedCidrs) : null;
  }

  async authenticate(call: EdgeCall): Promise<AuthResult> {
    const provider = this.providerOf(call);
    const principal = provider === null ? null : new CallbackSender(provider);
    const refusal = provider === null ? new NotFound() : await this.charge(provider, call);
    return { principal, headers: {}, refusal, keyId: null, partnerId: null, mode: null };
  }

  /** Null if any check fails. Takes the same time either way. */
  private providerOf({ method, url, remoteAddress }: EdgeCall): string | null {
    const [, provider, secret] = PATH.exec(pathOf(url)) ?? NO_MATCH;
    const isSecret = timingSafeEqual(digestOf(secret ?? ''), this.secret);
    const isSender = this.senders === null || this.senders.includes(remoteAddress);
    const isKnown = this.options.knows(provider ?? '');
    const isMethod = method === 'POST' || method === 'HEAD';
    return isSecret && isSender && isKnown && isMethod ? provider : null;
  }

  /** Charges only senders that know the secret: strangers must not make the database write. */
  private async charge(provider: string, { method, remoteAddress }: EdgeCall): Promise<AppError | null> {
    if (method === 'HEAD') return null;
    try {
      const retryAfterS = await this.options.limit(provider, remoteAddress);
      if (retryAfterS === null) return null;
      return new AppError('rate_limited', { headers: { 'retry-after': String(retryAfterS) } });
    } catch (error) {
      // If the database is down, storing the hint fails on its own.
      this.options.logger.warn(
        { event: 'callback.not_limited', err: error },
        'the rate limit cannot be asked',
      );
      return null;
    }
  }
}

/** Digests all have the same length, which a constant-time comparison requires. */
function digestOf(text: string): Buffer {
  return createHash('sha256').update(text).digest();
}
