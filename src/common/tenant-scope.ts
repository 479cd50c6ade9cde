import type { Mode } from './mode.js';

/** Whose rows a call may see and change: a partner's, in the mode of its key (D14). */
export interface TenantScope {
  readonly partnerId: string;
  readonly mode: Mode;
}
