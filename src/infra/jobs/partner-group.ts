import type { TenantScope } from '../../common/tenant-scope.js';

const SEPARATOR = ':';

/** The group of a partner's jobs in one mode: its Sandbox load and its paid orders take turns as two partners' do (D41). */
export function partnerGroup({ partnerId, mode }: TenantScope): string {
  return `${partnerId}${SEPARATOR}${mode}`;
}

/** Whose the group is. */
export function scopeOfGroup(group: string): TenantScope {
  const [partnerId = '', mode] = group.split(SEPARATOR);
  return { partnerId, mode: mode === 'sandbox' ? 'sandbox' : 'live' };
}
