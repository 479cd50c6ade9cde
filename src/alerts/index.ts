import { AlertEntity } from './alerts.repository.js';

/**
 * What the portal team and support should look at without being asked (`GET /internal/v1/alerts`). Owns the table `alerts`.
 * Features call `Alerts.raise` in the transaction in which it happened; a `onceKey` keeps a repetition out. What a sweep
 * meets again and again goes to `RepeatedAlerts`, many at once. Whoever has a list of what waits for support gives it to
 * `ReviewSweeps`, which raises an alert for each entry once.
 */
export { AlertsRepository, type AlertType, type NewAlert } from './alerts.repository.js';
export { Alerts, type RepeatedAlert, RepeatedAlerts, ReviewSweeps } from './alerts.js';
export { AlertsAdminModule, AlertsModule } from './alerts.module.js';

export const ALERT_ENTITIES = [AlertEntity];
