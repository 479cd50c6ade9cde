import { Module } from '@nestjs/common';
import { AlertsController } from './admin/alerts.controller.js';
import { Alerts, RepeatedAlerts, ReviewSweeps } from './alerts.js';
import { AlertsRepository } from './alerts.repository.js';
import { EndedAlerts } from './ended-alerts.js';

@Module({
  providers: [Alerts, AlertsRepository, EndedAlerts, RepeatedAlerts, ReviewSweeps],
  exports: [Alerts, AlertsRepository, EndedAlerts, RepeatedAlerts, ReviewSweeps],
})
export class AlertsModule {}

/** Lists alerts on the admin port. */
@Module({ imports: [AlertsModule], controllers: [AlertsController] })
export class AlertsAdminModule {}
