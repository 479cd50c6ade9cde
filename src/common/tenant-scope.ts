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
