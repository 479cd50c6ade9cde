import { createHash, timingSafeEqual } from 'node:crypto';
import type { IncomingMessage } from 'node:http';
import { BlockList, isIP } from 'node:net';
import type { AppConfig } from '../config/index.js';
import { clientAddress, pathOf } from '../infra/http/edge/index.js';

const PATH = /^\/callbacks\/([a-z0-9_-]{1,64})\/([A-Za-z0-9_-]{1,256})$/;
/** What a path without the right shape is compared with: it costs the same and fits nothing. */
const NO_MATCH = ['', '', ''] as const;

export interface DoorSettings {
  readonly secret: string;
  readonly allowedCidrs: AppConfig['callbacks']['allowedCidrs'];
  readonly trustProxyHops: AppConfig['trustProxyHops'];
  /** Whether a wholesaler of that name is connected. */
  knows(provider: string): boolean;
}

/** Lets in who calls from an allowed address, knows the secret and names a connected wholesaler. */
export class CallbackDoor {
  private readonly secret: Buffer;
  private readonly senders: BlockList | null;

  constructor(private readonly settings: DoorSettings) {
    const { secret, allowedCidrs } = settings;
    this.secret = digestOf(secret);
    this.senders = allowedCidrs.length > 0 ? toBlockList(allowedCidrs) : null;
  }

  /** The wholesaler's name; null for everybody else, whatever is wrong. Takes the same time either way. */
  admit(request: IncomingMessage): string | null {
    const [, provider, secret] = PATH.exec(pathOf(request.url ?? '')) ?? NO_MATCH;
    const isSecret = timingSafeEqual(digestOf(secret ?? ''), this.secret);
    const isSender = this.isSender(clientAddress(request, this.settings.trustProxyHops));
    const isKnown = this.settings.knows(provider ?? '');
    return isSecret && isSender && isKnown ? provider : null;
  }

  private isSender(address: string): boolean {
    if (this.senders === null) return true;
    const family = isIP(address);
    return family !== 0 && this.senders.check(address, family === 6 ? 'ipv6' : 'ipv4');
  }
}

/** Of one length, as a constant-time comparison needs. */
function digestOf(text: string): Buffer {
  return createHash('sha256').update(text).digest();
}

function toBlockList(cidrs: readonly string[]): BlockList {
  const list = new BlockList();
  for (const cidr of cidrs) {
    const [address = '', prefix] = cidr.split('/');
    const isIPv6 = isIP(address) === 6;
    list.addSubnet(address, Number(prefix ?? (isIPv6 ? 128 : 32)), isIPv6 ? 'ipv6' : 'ipv4');
  }
  return list;
}
