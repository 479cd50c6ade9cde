import { Module } from '@nestjs/common';
import { EventsModule } from '../events.module.js';
import { EventPositions } from './event-positions.js';

@Module({ imports: [EventsModule], providers: [EventPositions] })
export class EventsWorkerModule {}
