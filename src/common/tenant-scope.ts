import type { Mode } from './mode.js';

/** Whose rows a call may see and change: a partner's, in the mode of its key (D14). */
export interface TenantScope {
  readonly partnerId: string;
  readonly mode: Mode;
}

/** Whose rows a list shows: support, whose lists are of both modes, leaves the mode out. */
export interface PartnerScope {
  readonly partnerId: string;
  readonly mode?: Mode | undefined;
}

/** Whose rows a read by id may show: in the mode of a key, or in every mode that a portal session allows (D50). */
export interface ReadScope {
  readonly partnerId: string;
  readonly mode: Mode | readonly Mode[];
}
