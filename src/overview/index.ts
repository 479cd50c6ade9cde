/**
 * The portal's first screen: orders, cost, failures and deliveries of a period beside the one before, the wallet, what
 * needs attention, and the steps to go live. Owns the tables `partner_activity` and `partner_activity_progress`.
 * Callers: the portal. The worker counts orders and top-ups by quarter-hour (`RollUpActivity`), so that accepting an
 * order costs nothing more, and a figure here is at most a minute old.
 */
export { OverviewPortalModule, OverviewWorkerModule } from './overview.module.js';
export { RollUpActivity } from './worker/roll-up-activity.js';
