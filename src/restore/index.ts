/**
 * After the database was put back to an earlier time (D54): nothing is bought twice and no event is missed.
 * Tables: restore_epochs, unclaimed_purchases and placement_lookups; marks open orders and top-ups, and ends portal sessions.
 * Called by `npm run restore-epoch` (RepairRestore); every HTTP app asks WritesGuard before a write.
 * Flow: writes refused -> positions and versions moved, open rows distrusted -> FindSoldPurchases asks the providers ->
 * what nobody knows is kept as unclaimed -> writes taken; orders and top-ups look for theirs first (`insertionByMode`).
 */
export type { AskedProvider } from './find-sold-purchases.js';
export { OtherRestoreOpen, type RepairReport, RepairRestore, WorkersConnected } from './repair-restore.js';
export type { RestoreEpoch } from './restore-epochs.repository.js';
export { showOpenRestore } from './restore-metrics.js';
export { RestoreModule } from './restore.module.js';
export type { UnclaimedPurchase } from './unclaimed-purchases.repository.js';
export { WritesGuard } from './writes-guard.js';
