import type { ProviderUsageReport } from '../esim-provider.js';

/** Not allocated yet: neither ICCID nor activation code. */
const ALLOCATING: readonly string[] = ['CREATE', 'PAYING', 'PAID', 'GETTING_RESOURCE'];
const NEW = { esimStatus: 'GOT_RESOURCE', smdpStatus: 'RELEASED' };

const STATUSES: Readonly<Record<string, ProviderUsageReport['status']>> = {
  GOT_RESOURCE: 'issued',
  IN_USE: 'active',
  USED_UP: 'depleted',
  UNUSED_EXPIRED: 'expired',
  USED_EXPIRED: 'expired',
  SUSPENDED: 'suspended',
  CANCEL: 'canceled',
  // The tables say REVOKE, the callbacks REVOKED.
  REVOKE: 'canceled',
  REVOKED: 'canceled',
};

const PROFILE_STATUSES: Readonly<Record<string, ProviderUsageReport['profileStatus']>> = {
  RELEASED: 'released',
  DOWNLOAD: 'downloaded',
  INSTALLATION: 'installed',
  ENABLED: 'enabled',
  DISABLED: 'disabled',
  DELETED: 'deleted',
};

export interface EsimAccessStatuses {
  readonly esimStatus: string;
  readonly smdpStatus: string;
}

export function isAllocating({ esimStatus }: EsimAccessStatuses): boolean {
  return ALLOCATING.includes(esimStatus);
}

/** Never installed: only then it can be taken back. */
export function isNew({ esimStatus, smdpStatus }: EsimAccessStatuses): boolean {
  return esimStatus === NEW.esimStatus && smdpStatus === NEW.smdpStatus;
}

const USED: readonly string[] = ['IN_USE', 'USED_UP', 'USED_EXPIRED'];

/** On a device now or before: it could not be sold to anybody else. */
export function isInUse(esim: EsimAccessStatuses): boolean {
  return USED.includes(esim.esimStatus) || !['released', 'unknown'].includes(profileStatusOf(esim));
}

/** Null for a status that the contract does not name. */
export function statusOf(esim: EsimAccessStatuses): ProviderUsageReport['status'] | null {
  if (isAllocating(esim)) return 'issued';
  return Object.hasOwn(STATUSES, esim.esimStatus) ? STATUSES[esim.esimStatus]! : null;
}

export function profileStatusOf({ smdpStatus }: EsimAccessStatuses): ProviderUsageReport['profileStatus'] {
  return Object.hasOwn(PROFILE_STATUSES, smdpStatus) ? PROFILE_STATUSES[smdpStatus]! : 'unknown';
}
