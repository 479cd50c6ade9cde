import { Module } from '@nestjs/common';
import { PartnersModule } from '../../partners/index.js';
import { EventsModule } from '../events.module.js';
import { PartnerEventsController } from './partner-events.controller.js';

@Module({ imports: [PartnersModule, EventsModule], controllers: [PartnerEventsController] })
export class EventsAdminModule {}
