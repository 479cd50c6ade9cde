import { Module } from '@nestjs/common';
import { AlertsController } from './admin/alerts.controller.js';
import { Alerts, RepeatedAlerts, ReviewSweeps } from './alerts.js';
import { AlertsRepository } from './alerts.repository.js';

@Module({
  providers: [Alerts, AlertsRepository, RepeatedAlerts, ReviewSweeps],
  exports: [Alerts, AlertsRepository, RepeatedAlerts, ReviewSweeps],
})
export class AlertsModule {}

/** Lists alerts on the admin port. */
@Module({ imports: [AlertsModule], controllers: [AlertsController] })
export class AlertsAdminModule {}
