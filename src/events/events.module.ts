import { Module } from '@nestjs/common';
import { PartnersModule } from '../partners/index.js';
import { PartnerEventsController } from './admin/partner-events.controller.js';
import { EventsController } from './api/events.controller.js';
import { LongPolling } from './api/long-polling.js';
import { EventFeed, EventPositions } from './event-feed.js';
import { PortalEventsController } from './portal/portal-events.controller.js';
import { EventRecorder } from './event-recorder.js';
import { EventSubjectsRepository } from './event-subjects.repository.js';
import { EventsRepository } from './events.repository.js';
import { FeedWatch } from './feed-watch.js';

@Module({
  providers: [EventRecorder, EventsRepository, EventSubjectsRepository, EventFeed],
  exports: [EventRecorder, EventsRepository, EventFeed],
})
export class EventsModule {}

/** Calls of the partner API that wait for an event. */
@Module({
  imports: [EventsModule],
  providers: [EventSubjectsRepository, FeedWatch, LongPolling],
  exports: [LongPolling],
})
export class LongPollingModule {}

/** The partner's feed. */
@Module({ imports: [EventsModule, LongPollingModule], controllers: [EventsController] })
export class EventsApiModule {}

/** Support's view of a partner's events. */
@Module({ imports: [PartnersModule, EventsModule], controllers: [PartnerEventsController] })
export class EventsAdminModule {}

/** A partner's events, on the portal's port. */
@Module({ imports: [EventsModule], controllers: [PortalEventsController] })
export class EventsPortalModule {}

/** Assigns positions to new events in the worker. */
@Module({ imports: [EventsModule], providers: [EventPositions] })
export class EventsWorkerModule {}
