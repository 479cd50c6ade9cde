import { notifierModule } from '../infra/jobs/index.js';

/** BullMQ queue of notifications for endpoints' deliveries; a group is an endpoint's id (D34). */
export const DELIVERY_JOBS = 'delivery-jobs';

/** Created once: a second dynamic module would open a second queue. */
export const DeliveryNotifierModule = notifierModule(DELIVERY_JOBS);
