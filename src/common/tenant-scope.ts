import type { Mode } from './mode.js';

/** The rows that a call may see and change: a partner's, in the mode of its key (D14). */
export interface TenantScope {
  readonly partnerId: string;
  readonly mode: Mode;
}

/** The rows of a list. Support omits the mode, because its lists cover both. */
export interface PartnerScope {
  readonly partnerId: string;
  readonly mode?: Mode | undefined;
}

/** The rows that a read by id may show: in the mode of a key, or in every mode of a portal session (D50). */
export interface ReadScope {
  readonly partnerId: string;
  readonly mode: Mode | readonly Mode[];
}
