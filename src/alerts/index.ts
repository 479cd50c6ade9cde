import { AlertEntity } from './alerts.repository.js';

/**
 * Alerts for the portal team and support (`GET /internal/v1/alerts`). Owns the table `alerts`.
 * Features call `Alerts.raise` in the transaction of the cause; a `onceKey` prevents duplicates. Sweeps that find the
 * same cause repeatedly use `RepeatedAlerts`, many at once. A feature with a list of purchases for support registers it
 * with `ReviewSweeps`, which raises one alert per entry. The feature that raises a type tells `EndedAlerts` which of its
 * open alerts have ended.
 */
export { AlertsRepository, type AlertType, type NewAlert } from './alerts.repository.js';
export { Alerts, type RepeatedAlert, RepeatedAlerts, ReviewSweeps } from './alerts.js';
export { EndedAlerts } from './ended-alerts.js';
export { AlertsAdminModule, AlertsModule } from './alerts.module.js';
export type { AlertEntity };

export const ALERT_ENTITIES = [AlertEntity];
