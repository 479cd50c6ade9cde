export { HurryRows } from './hurry-rows.js';
export { LaneRunner, type LaneWork, type LookAfterwards } from './lane-runner.js';
export { LeasedLanes, type LeasedLanesOptions, type LeaseTable } from './leased-lanes.js';
export { LeasedRows } from './leased-rows.js';
export { openQueueConnection, QUEUE_SCHEMA, type QueueConnection } from './queue-connection.js';
export { InjectWakeUps, QueueModule, wakeUpsModule } from './queue.module.js';
export { type WakeUpJob, WakeUps } from './wake-ups.js';
