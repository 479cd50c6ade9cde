import { createHash, timingSafeEqual } from 'node:crypto';
import type { IncomingMessage } from 'node:http';
import type { AppConfig } from '../config/index.js';
import { clientAddress, pathOf } from '../infra/http/edge/index.js';
import { NetworkList } from '../infra/network/ip-address.js';

const PATH = /^\/callbacks\/([a-z0-9_-]{1,64})\/([A-Za-z0-9_-]{1,256})$/;
/** What a path without the right shape is compared with: it costs the same and fits nothing. */
const NO_MATCH = ['', '', ''] as const;

export interface CallbackAuthenticatorSettings {
  readonly secret: string;
  readonly allowedCidrs: AppConfig['callbacks']['allowedCidrs'];
  readonly trustProxyHops: AppConfig['trustProxyHops'];
  /** Whether a provider of that name is connected. */
  knows(provider: string): boolean;
}

/** Knows a provider's callback: it comes from an allowed address, has the secret and names a connected provider. */
export class CallbackAuthenticator {
  private readonly secret: Buffer;
  private readonly senders: NetworkList | null;

  constructor(private readonly settings: CallbackAuthenticatorSettings) {
    const { secret, allowedCidrs } = settings;
    this.secret = digestOf(secret);
    this.senders = allowedCidrs.length > 0 ? new NetworkList(allowedCidrs) : null;
  }

  /** The provider's name; null for everybody else, whatever is wrong. Takes the same time either way. */
  authenticate(request: IncomingMessage): string | null {
    const [, provider, secret] = PATH.exec(pathOf(request.url ?? '')) ?? NO_MATCH;
    const isSecret = timingSafeEqual(digestOf(secret ?? ''), this.secret);
    const isSender = this.isSender(clientAddress(request, this.settings.trustProxyHops));
    const isKnown = this.settings.knows(provider ?? '');
    return isSecret && isSender && isKnown ? provider : null;
  }

  private isSender(address: string): boolean {
    return this.senders === null || this.senders.includes(address);
  }
}

/** Of one length, as a constant-time comparison needs. */
function digestOf(text: string): Buffer {
  return createHash('sha256').update(text).digest();
}
