import { Inject, Injectable } from '@nestjs/common';
import { HOUR_MS } from '../../common/durations.js';
import { APP_CONFIG, type AppConfig } from '../../config/index.js';
import { SecretBox } from '../../infra/crypto/index.js';
import type { InstallVisit } from './install-visit.js';

const COOKIE = 'install-pass';
const PASS_MS = HOUR_MS;

/**
 * Remembers in a cookie that a browser has entered a link's access code. The cookie's value is sealed for the link, so
 * that nobody can make one without `SECRETS_KEYS`.
 */
@Injectable()
export class AccessPass {
  private readonly secure: boolean;

  constructor(
    private readonly secrets: SecretBox,
    @Inject(APP_CONFIG) { install }: Pick<AppConfig, 'install'>,
  ) {
    this.secure = install.url?.startsWith('https:') ?? false;
  }

  /** The `Set-Cookie` header. The browser sends the cookie only to this link's page. */
  issue({ token, facts }: InstallVisit): string {
    const value = this.secrets.seal(String(Date.now() + PASS_MS), ownerOf(facts.linkId));
    const parts = [
      `${COOKIE}=${value}`,
      `Path=/i/${token}`,
      `Max-Age=${PASS_MS / 1_000}`,
      'HttpOnly',
      'SameSite=Lax',
    ];
    return [...parts, ...(this.secure ? ['Secure'] : [])].join('; ');
  }

  /** Whether the link needs no code, or the browser has entered it within the last hour. */
  isHeld({ facts }: InstallVisit, cookies: string | undefined): boolean {
    if (facts.accessCodeHash === null) return true;
    return (cookies ?? '')
      .split(';')
      .map((part) => part.trim())
      .filter((part) => part.startsWith(`${COOKIE}=`))
      .some((part) => this.isValid(part.slice(COOKIE.length + 1), facts.linkId));
  }

  private isValid(value: string, linkId: string): boolean {
    try {
      return Number(this.secrets.open(value, ownerOf(linkId))) > Date.now();
    } catch {
      return false;
    }
  }
}

/** Differs from every row's id, so that no stored secret can be used as a pass. */
function ownerOf(linkId: string): string {
  return `install-pass ${linkId}`;
}
