import { wakeUpsModule } from '../infra/queue/index.js';

/** The queue of wake-ups; a lane is an endpoint's id. */
export const WEBHOOK_WAKE_UPS_QUEUE = 'webhook-wake-ups';

/** Created once: a second dynamic module would open a second queue. */
export const WEBHOOK_WAKE_UPS = wakeUpsModule(WEBHOOK_WAKE_UPS_QUEUE);
