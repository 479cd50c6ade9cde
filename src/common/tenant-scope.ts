import type { Mode } from './mode.js';

/** Whose rows a call may see and change: a partner's, in the mode of its key (D14). */
export interface TenantScope {
  readonly partnerId: string;
  readonly mode: Mode;
}

/** A partner's rows of one mode, or of both: support sees both. */
export interface PartnerScope {
  readonly partnerId: string;
  readonly mode?: Mode | undefined;
}
