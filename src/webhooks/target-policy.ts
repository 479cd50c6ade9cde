import { isIP } from 'node:net';
import { Inject, Injectable } from '@nestjs/common';
import { ValidationFailed } from '../common/errors/index.js';
import { APP_CONFIG, type AppConfig } from '../config/index.js';
import { isPublicAddress } from './address-policy.js';

/** Why a URL is no target for webhooks; the message never repeats the URL. */
export interface TargetRefusal {
  readonly code: string;
  readonly message: string;
}

export const MAX_URL_LENGTH = 2_048;
const LOCAL_SUFFIXES = ['.localhost', '.local', '.internal'];

const refusal = (code: string, message: string): TargetRefusal => ({ code, message });

/**
 * Where webhooks may go (spec section 2: public, HTTPS; D35). URLs are checked at registration and again at every
 * attempt, addresses at every connect. `WEBHOOK_ALLOW_PRIVATE_TARGETS` lifts https, literals and private addresses.
 */
@Injectable()
export class TargetPolicy {
  private readonly allowPrivate: boolean;

  constructor(
    @Inject(APP_CONFIG) config: { readonly webhooks: Pick<AppConfig['webhooks'], 'allowPrivateTargets'> },
  ) {
    this.allowPrivate = config.webhooks.allowPrivateTargets;
  }

  /** What is wrong with `text` as a target, without asking the network; null when nothing is. */
  refuseUrl(text: string): TargetRefusal | null {
    return refuseForm(text) ?? (this.allowPrivate ? null : refusePrivate(new URL(text)));
  }

  /** The check at registration. @throws ValidationFailed with the pointer `/url` */
  assertAllowed(url: string): void {
    const refused = this.refuseUrl(url);
    if (refused) throw new ValidationFailed([{ pointer: '/url', ...refused }]);
  }

  /** Whether a resolved address must not be connected to. */
  refusesAddress(address: string): boolean {
    return !this.allowPrivate && !isPublicAddress(address);
  }
}

function refuseForm(text: string): TargetRefusal | null {
  if (text.length > MAX_URL_LENGTH)
    return refusal('too_long', `must have at most ${MAX_URL_LENGTH} characters`);
  // The URL parser drops tabs and line ends, trims spaces and takes \ for /: only what needs no repair is taken.
  if (!/^https?:\/\/[^\s\\/?#]/i.test(text) || /[\s\\\p{Cc}]/u.test(text) || !URL.canParse(text)) {
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
  // The parser has turned every spelling of an IPv4 address (0x7f.1, 2130706433) into dots and decimals.
  if (host.startsWith('[') || isIP(host) !== 0)
    return refusal('ip_literal', 'must name a host, not an address');
  if (host === '' || host === 'localhost' || LOCAL_SUFFIXES.some((suffix) => host.endsWith(suffix))) {
    return refusal('local_name', 'must name a public host');
  }
  return null;
}
