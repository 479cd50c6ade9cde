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

/** Whether the eSIM is untouched since issue: the condition for canceling it (D22, Cancel). */
export function isUntouched(esim: {
  readonly status: EsimStatus;
  readonly profileStatus: ProfileStatus;
}): boolean {
  return esim.status === 'issued' && esim.profileStatus === 'released';
}

/** Whether the status allows top-ups: a depleted eSIM can be topped up, an expired one cannot (D23). */
export function takesTopups(status: EsimStatus): boolean {
  return status === 'issued' || status === 'active' || status === 'depleted';
}

/** Installation data of an eSIM: secret, encrypted at rest, shown by two reads only (D25). */
export interface InstallData {
  readonly smdpAddress: string;
  readonly matchingId: string;
  readonly confirmationCode: string | null;
}

/** `LPA:1$<SM-DP+ address>$<matching id>`, with `$$1` when a confirmation code is required (SGP.22 section 4.1). */
export function toActivationCode(install: InstallData): string {
  const suffix = install.confirmationCode === null ? '' : '$$1';
  return `LPA:1$${install.smdpAddress}$${install.matchingId}${suffix}`;
}

/** The installation links of iOS and Android for an activation code. */
export function toInstallLinks(activationCode: string): { iosUrl: string; androidUrl: string } {
  const path = `esim_qrcode_provisioning?carddata=${activationCode}`;
  return {
    iosUrl: `https://esimsetup.apple.com/${path}`,
    androidUrl: `https://esimsetup.android.com/${path}`,
  };
}
