/** A partner's brand on the pages that its travelers see; null for what it has not set. */
export interface PartnerBrand {
  /** Replaces the partner's name. */
  readonly name: string | null;
  /** An https URL. */
  readonly logoUrl: string | null;
  /** A CSS color, `#rrggbb`. */
  readonly accent: string | null;
  /** An https URL. */
  readonly helpUrl: string | null;
}

const UNSET: PartnerBrand = { name: null, logoUrl: null, accent: null, helpUrl: null };

/** The brand as stored, in which fields that were never set are missing. */
export function toPartnerBrand(stored: Partial<PartnerBrand>): PartnerBrand {
  return { ...UNSET, ...stored };
}
