/** The two modes of the service, chosen by the API key (spec section 1, D14). */
export const MODES = ['sandbox', 'live'] as const;
export type Mode = (typeof MODES)[number];
