import { AlertEntity } from './alert.entity.js';

export { type AlertType } from './alert.entity.js';
export { Alerts, type NewAlert } from './alerts.js';
export { AlertsAdminModule, AlertsModule } from './alerts.module.js';

export const ALERT_ENTITIES = [AlertEntity];
