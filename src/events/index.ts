/**
 * Events about a partner's orders, eSIMs and top-ups (spec section 6, D28, D39). Owns the tables `events`, the outbox,
 * and `event_feed_days`.
 * Features call `EventRecorder.record` in the transaction of the change. It creates the body once and records the event
 * with its deliveries; the fan-out registered by webhooks notifies the workers. Partners read the same bytes in `GET
 * /v1/events` through `EventFeed`; support reads them on the admin port. The worker assigns feed positions to committed
 * events, and readers do too.
 */
export {
  DOCUMENT_EVENT_TYPES,
  EVENT_TYPES,
  type EventData,
  type EventType,
  type NewEvent,
  OPT_IN_EVENT_TYPES,
} from './event.js';
export { eventDays, readBodiesInTheirDays } from './event-days.js';
export { EventEntity } from './event.entity.js';
export { EventFeed } from './event-feed.js';
export {
  type EventFanOut,
  EventRecorder,
  isNearNow,
  type RecordedEvent,
  type UsageLevels,
} from './event-recorder.js';
export {
  EventsAdminModule,
  EventsApiModule,
  EventsModule,
  EventsPortalModule,
  EventsWorkerModule,
  LongPollingModule,
} from './events.module.js';
export { LongPolling } from './api/long-polling.js';
export { firstEventOf } from './event-subjects.repository.js';
export { EventsRepository, type OrderEvent } from './events.repository.js';
