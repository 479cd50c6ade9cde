/**
 * A partner's brand on the pages that its travelers see, as it is stored and as the APIs show it. Null for what it has
 * not set.
 */
export interface PartnerBrand {
  /** Replaces the partner's name. */
  readonly name: string | null;
  /** An https URL. */
  readonly logo_url: string | null;
  /** A CSS color, `#rrggbb`. */
  readonly accent: string | null;
  /** An https URL. */
  readonly help_url: string | null;
}

/**
 * Whether the text is an https address that pages can show, and whose origin a Content-Security-Policy can name: `*`, `;`
 * and `,` in a host have a meaning there. A user name before the host would hide it.
 */
export function isBrandUrl(text: unknown): text is string {
  if (typeof text !== 'string' || !/^https:\/\/[^/\\]/.test(text) || /\s/.test(text)) return false;
  const url = URL.parse(text);
  return url !== null && url.username === '' && url.password === '' && HOST.test(url.hostname);
}

/** A name as DNS has it, an IPv4 address, or an IPv6 address in brackets. */
const HOST = /^(?:[a-z0-9_-]+(?:\.[a-z0-9_-]+)*|\[[0-9a-f:.]+\])$/;

const UNSET: PartnerBrand = { name: null, logo_url: null, accent: null, help_url: null };

/** The brand as stored, in which fields that were never set are missing. */
export function toPartnerBrand(stored: Partial<PartnerBrand>): PartnerBrand {
  return { ...UNSET, ...stored };
}
