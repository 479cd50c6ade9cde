/**
 * eSIM profiles from issue to expiry (spec sections 4 and 8, D23 to D26). Owns the table `esims`, except the columns of
 * the poll plan, which `esim-sync/` writes, and `esim_auto_topups`, whose top-ups `topups/` places.
 * Callers: orders issue eSIMs (`IssueEsims`); top-ups and `esim-sync/` report observations (`EsimObserver`).
 * Flow: observation -> `observe` (the one reducer, `esim-lifecycle.ts`; provider reports in `usage-report.ts`) -> row
 * and events (activation, usage thresholds, expiry) in one transaction. The worker expires ended eSIMs; in Sandbox
 * `SimulateEsim` plays the device.
 */
export { AutoTopupEntity, isCrossed } from './auto-topup.entity.js';
export { AutoTopupsRepository, type AutoTopupTerms } from './auto-topups.repository.js';
export { EsimResponse, toEsimResponse } from './api/esim.dto.js';
export { ChangeEsim } from './change-esim.js';
export {
  type ControlAction,
  ESIM_STATUSES,
  type EsimStatus,
  type InstallData,
  isUntouched,
  needsConfirmationCode,
  type PendingAction,
  PROFILE_STATUSES,
  type ProfileStatus,
  takesTopups,
  toActivationCode,
  toInstallLinks,
} from './esim.js';
export { actionsOf, canCancel, requireAction } from './esim-actions.js';
export { EsimEntity, toProviderEsim } from './esim.entity.js';
export { EsimObserver } from './esim-observer.js';
export { EsimQueries } from './esim-queries.js';
export { EXPIRING_HOURS, USAGE_THRESHOLDS } from './esim-transition.js';
export {
  EsimsAdminModule,
  EsimsApiModule,
  EsimsModule,
  EsimsPortalModule,
  EsimsWorkerModule,
} from './esims.module.js';
export { EsimsRepository } from './esims.repository.js';
export { type EsimIssue, type IssuedEsim, IssueEsims } from './issue-esims.js';
export { QrCodes } from './qr-codes.js';
export type { UsageReport } from './usage-report.js';
