import type { TenantScope } from '../../common/tenant-scope.js';

const SEPARATOR = ':';

/** The group of a partner's jobs in one mode: its Sandbox load and its paid orders take turns as two partners' do (D41). */
export function partnerGroup({ partnerId, mode }: TenantScope): string {
  return `${partnerId}${SEPARATOR}${mode}`;
}

/** Whose the group is; null when it is no group: whoever reaches the queue's server can name one. */
export function scopeOfGroup(group: string): TenantScope | null {
  const [partnerId, mode, ...rest] = group.split(SEPARATOR);
  if (!partnerId || (mode !== 'sandbox' && mode !== 'live') || rest.length > 0) return null;
  return { partnerId, mode };
}
