/**
 * Repairs a database that was restored to an earlier time (D54): nothing is bought twice and no event is missed.
 * Tables: restore_epochs, unclaimed_purchases and placement_lookups; marks open orders and top-ups, and ends portal
 * sessions.
 * Callers: `npm run restore-epoch` (RepairRestore); the partner and portal apps call WritesGuard before a write.
 * Flow: writes refused -> positions and versions moved, open rows distrusted -> FindSoldPurchases queries the providers
 * -> unknown purchases are stored as unclaimed -> writes accepted; orders and top-ups look for theirs first
 * (`insertionByMode`).
 */
export type { AskedProvider } from './find-sold-purchases.js';
export { OtherRestoreOpen, type RepairReport, RepairRestore, WorkersConnected } from './repair-restore.js';
export type { RestoreEpoch } from './restore-epochs.repository.js';
export { showOpenRestore } from './restore-metrics.js';
export { RestoreModule } from './restore.module.js';
export type { UnclaimedPurchase } from './unclaimed-purchases.repository.js';
export { WritesGuard } from './writes-guard.js';
