import type { ProviderUsageReport } from '../../src/providers/index.js';
import type { EsimEntity } from '../../src/esims/index.js';

export const GB = 1_000_000_000;
export const DAY_MS = 86_400_000;
export const ISSUED_AT = new Date('2026-03-01T00:00:00Z');

/** The time `n` minutes after the eSIM was issued. */
export function minute(n: number): Date {
  return new Date(ISSUED_AT.getTime() + n * 60_000);
}

/** A newly issued eSIM of 1 GB for 7 days. */
export function newEsim(changes: Partial<EsimEntity> = {}): EsimEntity {
  return {
    id: 'esim_1',
    partnerId: 'ptr_1',
    mode: 'live',
    orderId: 'ord_1',
    packageId: 'pkg_1',
    iccid: '8985220000000000001',
    msisdn: null,
    label: null,
    metadata: {},
    status: 'issued',
    version: 1,
    profileStatus: 'released',
    apn: null,
    installSecrets: '',
    unlimited: false,
    totalBytes: GB,
    usedBytes: 0,
    usageAsOf: ISSUED_AT,
    usageSource: 'poll',
    thresholdsCrossed: [],
    pooled: true,
    plans: [],
    days: null,
    validityDays: 7,
    activationPolicy: 'on_first_use',
    installBy: new Date(ISSUED_AT.getTime() + 180 * DAY_MS),
    activatedAt: null,
    expiresAt: null,
    provider: 'esim_access',
    providerEsimId: 'up_1',
    readAt: null,
    toppedUpAt: null,
    nextPollAt: null,
    pendingAction: null,
    actionReason: null,
    actionDueAt: null,
    actionSentAt: null,
    actionFence: 0,
    actionFailure: null,
    actedAt: null,
    revokedAt: null,
    replacedBy: null,
    expiryWarningAt: null,
    createdAt: ISSUED_AT,
    updatedAt: ISSUED_AT,
    ...changes,
  };
}

/** A provider's reading of an unused eSIM. */
export function newReading(changes: Partial<ProviderUsageReport> = {}): ProviderUsageReport {
  return {
    providerEsimId: 'up_1',
    status: 'issued',
    profileStatus: 'released',
    usedBytes: 0,
    totalBytes: GB,
    goesOn: false,
    plans: null,
    activatedAt: null,
    expiresAt: null,
    asOf: minute(1),
    ...changes,
  };
}
