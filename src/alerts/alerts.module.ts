import { Module } from '@nestjs/common';
import { AlertsController } from './admin/alerts.controller.js';
import { Alerts } from './alerts.js';
import { AlertsRepository } from './alerts.repository.js';

@Module({ providers: [Alerts, AlertsRepository], exports: [Alerts, AlertsRepository] })
export class AlertsModule {}

/** The reading side, on the admin port. */
@Module({ imports: [AlertsModule], controllers: [AlertsController] })
export class AlertsAdminModule {}
