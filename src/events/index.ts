export { EventsAdminModule } from './admin/events-admin.module.js';
export { EventsApiModule } from './api/events-api.module.js';
export { EVENT_TYPES, type EventData, type EventType, type NewEvent, type RecordedEvent } from './event.js';
export { EventEntity } from './event.entity.js';
export { EventFeed } from './event-feed.js';
export { type EventFanOut, EventRecorder } from './event-recorder.js';
export { EventsModule } from './events.module.js';
export { EventsRepository } from './events.repository.js';
export { EventsWorkerModule } from './worker/events-worker.module.js';
