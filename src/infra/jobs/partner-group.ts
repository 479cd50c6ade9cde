import type { TenantScope } from '../../common/tenant-scope.js';

const SEPARATOR = ':';

/** Group of a partner's jobs in one mode: its Sandbox load and its paid orders take turns like two partners (D41). */
export function partnerGroup({ partnerId, mode }: TenantScope): string {
  return `${partnerId}${SEPARATOR}${mode}`;
}

/**
 * Partner and mode of the group; null for an invalid name, because anyone with access to the queue's server can send
 * one.
 */
export function scopeOfGroup(group: string): TenantScope | null {
  const [partnerId, mode, ...rest] = group.split(SEPARATOR);
  if (!partnerId || (mode !== 'sandbox' && mode !== 'live') || rest.length > 0) return null;
  return { partnerId, mode };
}
