import { AlertEntity } from './alert.entity.js';

export { type AlertType } from './alert.entity.js';
export { Alerts } from './alerts.js';
export { type NewAlert } from './alerts.repository.js';
export { AlertsAdminModule, AlertsModule } from './alerts.module.js';
export { ReviewSweeps } from './review-sweeps.js';

export const ALERT_ENTITIES = [AlertEntity];
