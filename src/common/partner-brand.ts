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
 * Whether the text is an https URL that a page may link to or show. Its host goes into the page's security policy, and
 * URLs permit hosts such as `*` and `a;form-action`.
 */
export function isBrandUrl(text: unknown): text is string {
  if (typeof text !== 'string' || !text.startsWith('https://') || !URL.canParse(text)) return false;
  return /^[a-z0-9.-]+$/.test(new URL(text).hostname);
}

const UNSET: PartnerBrand = { name: null, logo_url: null, accent: null, help_url: null };

/** The brand as stored, in which fields that were never set are missing. */
export function toPartnerBrand(stored: Partial<PartnerBrand>): PartnerBrand {
  return { ...UNSET, ...stored };
}
