import { Module } from '@nestjs/common';
import { EventsModule } from '../events.module.js';
import { PartnerEventsController } from './partner-events.controller.js';

@Module({ imports: [EventsModule], controllers: [PartnerEventsController] })
export class EventsAdminModule {}
