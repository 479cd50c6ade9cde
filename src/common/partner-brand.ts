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

const UNSET: PartnerBrand = { name: null, logo_url: null, accent: null, help_url: null };

/** The brand as stored, in which fields that were never set are missing. */
export function toPartnerBrand(stored: Partial<PartnerBrand>): PartnerBrand {
  return { ...UNSET, ...stored };
}
