import type { ListenAddress, RateLimitConfig } from './bounds.js';
import type { EnvReader } from './env-reader.js';

/** The partner portal (D50). */
export interface PortalConfig {
  readonly listen: ListenAddress;
  /** The portal's address for browsers, without a trailing slash; session links begin with it. */
  readonly url: string;
  /** The API's address for partners, without a trailing slash, for the pages' examples; null when not configured. */
  readonly apiUrl: string | null;
  /** Whether `url` is https: the cookie is then `Secure` and bound to its host by its name. */
  readonly secure: boolean;
  /** Origins that may show the portal in a frame; empty for none. */
  readonly frameAncestors: readonly string[];
  readonly brand: PortalBrand;
  /** Rate limit per session. */
  readonly rateLimit: RateLimitConfig;
}

/** The operator's brand in the portal. */
export interface PortalBrand {
  readonly name: string;
  readonly logoUrl: string | null;
  /** A CSS color, `#rrggbb`. */
  readonly accent: string | null;
}

const PORTS = { min: 0, max: 65_535 };
const DEFAULT_PORT = 3004;

/**
 * Context for reading the settings. A process that neither serves the portal nor creates sessions needs no
 * `PORTAL_URL`.
 */
export interface PortalTerms {
  readonly production: boolean;
  readonly usesPortal: boolean;
}

export function readPortalConfig(read: EnvReader, { production, usesPortal }: PortalTerms): PortalConfig {
  const port = read.integer('PORTAL_PORT', DEFAULT_PORT, PORTS);
  const schemes = production ? ['https:'] : ['https:', 'http:'];
  const url = readBase(read, 'PORTAL_URL', schemes) ?? `http://localhost:${port}`;
  if (production && usesPortal && read.text('PORTAL_URL') === undefined)
    read.problems.push(
      'PORTAL_URL is required with NODE_ENV=production: session links start with it, and https makes their cookie Secure',
    );
  const secure = url.startsWith('https:');
  const frameAncestors = readOrigins(read, 'PORTAL_FRAME_ANCESTORS');
  if (frameAncestors.length > 0 && !secure)
    read.problems.push(
      'PORTAL_FRAME_ANCESTORS needs an https PORTAL_URL: browsers send only Secure cookies in a frame',
    );
  return {
    listen: { host: read.text('PORTAL_HOST') ?? '0.0.0.0', port },
    url,
    apiUrl: readBase(read, 'API_URL', schemes) ?? null,
    secure,
    frameAncestors,
    brand: readBrand(read),
    rateLimit: {
      perMinute: read.integer('PORTAL_RATE_LIMIT_PER_MINUTE', 600, { min: 1, max: 6_000_000 }),
      burst: read.integer('PORTAL_RATE_LIMIT_BURST', 1_200, { min: 1, max: 1_000_000 }),
    },
  };
}

function readBase(read: EnvReader, name: string, schemes: readonly string[]): string | undefined {
  return read.url(name, schemes)?.replace(/\/+$/, '');
}

function readBrand(read: EnvReader): PortalBrand {
  const accent = read.text('PORTAL_BRAND_ACCENT') ?? null;
  if (accent !== null && !/^#[0-9a-fA-F]{6}$/.test(accent))
    read.problems.push('PORTAL_BRAND_ACCENT must be a color such as #0a66c2');
  return {
    name: read.text('PORTAL_BRAND_NAME') ?? 'eSIM Partner Portal',
    logoUrl: read.url('PORTAL_BRAND_LOGO_URL', ['https:', 'data:']) ?? null,
    accent,
  };
}

/** `https://a.example,https://b.example`; only origins pass, because each goes into a header. */
function readOrigins(read: EnvReader, name: string): readonly string[] {
  const given = (read.text(name) ?? '').split(',').flatMap((part) => part.trim() || []);
  if (given.every((text) => URL.canParse(text) && new URL(text).origin === text && text.startsWith('https:')))
    return given;
  read.problems.push(`${name} must be origins such as https://portal.example, separated by commas`);
  return [];
}
