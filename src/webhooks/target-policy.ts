import { isIP, isIPv4 } from 'node:net';
import { Inject, Injectable } from '@nestjs/common';
import { isLine } from '../common/plain-text.js';
import { ValidationFailed } from '../common/errors/index.js';
import { APP_CONFIG, type AppConfig } from '../config/index.js';
import { NetworkList } from '../infra/network/ip-address.js';

/** Why a URL is not an allowed webhook target; the message never repeats the URL. */
export interface TargetRefusal {
  readonly code: string;
  readonly message: string;
}

export const MAX_URL_LENGTH = 2_048;
const LOCAL_SUFFIXES = ['.localhost', '.local', '.internal'];

const refusal = (code: string, message: string): TargetRefusal => ({ code, message });

/**
 * Decides which targets are allowed (spec section 2: public, HTTPS; D35). URLs are checked at registration and again at
 * every attempt, addresses at every connect. `WEBHOOK_ALLOW_PRIVATE_TARGETS` permits http, literals and private
 * addresses.
 */
@Injectable()
export class TargetPolicy {
  private readonly allowPrivate: boolean;

  constructor(
    @Inject(APP_CONFIG) config: { readonly webhooks: Pick<AppConfig['webhooks'], 'allowPrivateTargets'> },
  ) {
    this.allowPrivate = config.webhooks.allowPrivateTargets;
  }

  /** Reason to refuse `text` as a target, decided without network access; null when it is allowed. */
  refuseUrl(text: string): TargetRefusal | null {
    return refuseForm(text) ?? (this.allowPrivate ? null : refusePrivate(new URL(text)));
  }

  /** The check at registration. @throws ValidationFailed with the pointer `/url` */
  assertAllowed(url: string): void {
    const refused = this.refuseUrl(url);
    if (refused) throw new ValidationFailed([{ pointer: '/url', ...refused }]);
  }

  /** Whether connecting to a resolved address is forbidden. */
  refusesAddress(address: string): boolean {
    return !this.allowPrivate && !isPublicAddress(address);
  }
}

function refuseForm(text: string): TargetRefusal | null {
  if (text.length > MAX_URL_LENGTH)
    return refusal('too_long', `must have at most ${MAX_URL_LENGTH} characters`);
  // The URL parser drops tabs and line ends, trims spaces and reads \ as /: accept only text that needs no repair.
  if (!/^https?:\/\/[^\s\\/?#]/i.test(text) || /[\s\\]/.test(text) || !isLine(text) || !URL.canParse(text)) {
    return refusal('invalid_url', 'must be an absolute HTTPS URL');
  }
  const authority = /^https?:\/\/([^/?#]*)/i.exec(text)?.[1] ?? '';
  if (authority.includes('@')) return refusal('user_info', 'must not contain user information');
  if (text.includes('#')) return refusal('fragment', 'must not contain a fragment');
  return null;
}

function refusePrivate(url: URL): TargetRefusal | null {
  if (url.protocol !== 'https:') return refusal('https_required', 'must be an absolute HTTPS URL');
  const host = url.hostname.toLowerCase().replace(/\.+$/, '');
  // The parser has normalized every spelling of an IPv4 address (0x7f.1, 2130706433) to dotted decimals.
  if (host.startsWith('[') || isIP(host) !== 0)
    return refusal('ip_literal', 'must name a host, not an address');
  if (host === '' || host === 'localhost' || LOCAL_SUFFIXES.some((suffix) => host.endsWith(suffix))) {
    return refusal('local_name', 'must name a public host');
  }
  return null;
}

/** IANA special-purpose IPv4 ranges that are not public unicast, and 6to4's relay anycast (D35). */
const REFUSED_IPV4 = new NetworkList([
  '0.0.0.0/8',
  '10.0.0.0/8',
  '100.64.0.0/10',
  '127.0.0.0/8',
  '169.254.0.0/16',
  '172.16.0.0/12',
  '192.0.0.0/24',
  '192.0.2.0/24',
  '192.88.99.0/24',
  '192.168.0.0/16',
  '198.18.0.0/15',
  '198.51.100.0/24',
  '203.0.113.0/24',
  '224.0.0.0/4',
  '240.0.0.0/4',
]);

const GLOBAL_IPV6 = new NetworkList(['2000::/3']);
/** Parts of 2000::/3 that are not public unicast: Teredo, ORCHID and similar, documentation, 6to4 (D35). */
const REFUSED_IPV6 = new NetworkList(['2001::/23', '2001:db8::/32', '2002::/16', '3fff::/20']);

/**
 * Whether webhooks may be sent to `address`: public unicast only (D35). IPv6 is closed by default: outside 2000::/3 lie
 * loopback, link-local, unique local, mapped and NAT64 addresses, and all future assignments.
 */
export function isPublicAddress(address: string): boolean {
  if (isIPv4(address)) return !REFUSED_IPV4.includes(address);
  // A zone (`fe80::1%eth0`) names a local link, and `NetworkList` would cut it off; public addresses have none.
  if (address.includes('%')) return false;
  // `NetworkList` reads a mapped address as IPv4, which no IPv6 network contains: it is refused.
  return GLOBAL_IPV6.includes(address) && !REFUSED_IPV6.includes(address);
}
