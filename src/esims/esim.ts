import type { ProviderFailure } from '../providers/index.js';

export const ESIM_STATUSES = ['issued', 'active', 'depleted', 'expired', 'suspended', 'canceled'] as const;
export type EsimStatus = (typeof ESIM_STATUSES)[number];

export const PROFILE_STATUSES = [
  'released',
  'downloaded',
  'installed',
  'enabled',
  'disabled',
  'deleted',
  'unknown',
] as const;
export type ProfileStatus = (typeof PROFILE_STATUSES)[number];

export const USAGE_SOURCES = ['callback', 'poll', 'simulated'] as const;
export type UsageSource = (typeof USAGE_SOURCES)[number];

export const PLAN_STATUSES = ['active', 'queued', 'ended', 'unknown'] as const;
export type PlanStatus = (typeof PLAN_STATUSES)[number];

/** Actions that the wholesaler carries out on one eSIM. */
export const CONTROL_ACTIONS = ['suspend', 'resume', 'revoke'] as const;
export type ControlAction = (typeof CONTROL_ACTIONS)[number];

/** Actions that keep an eSIM from everything else while one is in progress. */
export const PENDING_ACTIONS = [...CONTROL_ACTIONS, 'replace'] as const;
export type PendingAction = (typeof PENDING_ACTIONS)[number];

/** Why a requested action did not take effect. */
export interface ActionFailure extends ProviderFailure {
  readonly action: PendingAction;
}

/** A plan as the column `plans` stores it; times as ISO 8601. */
export interface StoredPlan {
  readonly upstreamPackageId: string | null;
  readonly status: Exclude<PlanStatus, 'unknown'>;
  /** Null for unlimited data, and if the provider does not say. */
  readonly totalBytes: number | null;
  readonly remainingBytes: number | null;
  readonly startsAt: string | null;
  readonly endsAt: string | null;
  /** Time of the last reading that listed it; null while the newest one does. */
  readonly lastListedAt: string | null;
  /** Set in Sandbox, which starts a queued plan itself. */
  readonly validityDays: number | null;
}

/** Whether the eSIM is untouched since issue: the condition for canceling it (D22, Cancel). */
export function isUntouched(esim: {
  readonly status: EsimStatus;
  readonly profileStatus: ProfileStatus;
}): boolean {
  return esim.status === 'issued' && esim.profileStatus === 'released';
}

/**
 * Whether the eSIM can be topped up: a depleted one can, an expired one cannot (D23). An eSIM that is about to be revoked
 * or replaced would take the money with it.
 */
export function takesTopups({
  status,
  pendingAction,
}: {
  readonly status: EsimStatus;
  readonly pendingAction: PendingAction | null;
}): boolean {
  const isEnding = pendingAction === 'revoke' || pendingAction === 'replace';
  return !isEnding && (status === 'issued' || status === 'active' || status === 'depleted');
}

/** Installation data of an eSIM: secret, encrypted at rest, shown by two reads only (D25). */
export interface InstallData {
  readonly smdpAddress: string;
  readonly matchingId: string;
  readonly confirmationCode: string | null;
  /** Missing in eSIMs that were issued before these fields existed. */
  readonly activationCode?: string | null;
  readonly pin?: string | null;
  readonly puk?: string | null;
}

const ACTIVATION_CODE =
  /^(?:LPA:)?1\$[A-Za-z0-9.:-]{1,255}\$[A-Za-z0-9-]{1,255}(?:\$[A-Za-z0-9.:-]{0,255}){0,3}$/i;

/**
 * The provider's code with all its parts, or else `LPA:1$<SM-DP+ address>$<matching id>`, with `$$1` when a
 * confirmation code is required (SGP.22 section 4.1).
 */
export function toActivationCode(install: InstallData): string {
  const { activationCode, smdpAddress, matchingId, confirmationCode } = install;
  if (activationCode && ACTIVATION_CODE.test(activationCode))
    return /^LPA:/i.test(activationCode) ? activationCode : `LPA:${activationCode}`;
  return `LPA:1$${smdpAddress}$${matchingId}${confirmationCode === null ? '' : '$$1'}`;
}

/** Whether the fifth part of an activation code says that the user must enter a confirmation code. */
export function needsConfirmationCode(activationCode: string): boolean {
  return activationCode.split('$')[4] === '1';
}

/** The installation links of iOS and Android for an activation code. */
export function toInstallLinks(activationCode: string): { iosUrl: string; androidUrl: string } {
  const path = `esim_qrcode_provisioning?carddata=${activationCode}`;
  return {
    iosUrl: `https://esimsetup.apple.com/${path}`,
    androidUrl: `https://esimsetup.android.com/${path}`,
  };
}
