import { Module } from '@nestjs/common';
import { EventFeed } from './event-feed.js';
import { EventRecorder } from './event-recorder.js';
import { EventsRepository } from './events.repository.js';

@Module({
  providers: [EventRecorder, EventsRepository, EventFeed],
  exports: [EventRecorder, EventsRepository, EventFeed],
})
export class EventsModule {}
