import { notifierModule } from '../infra/jobs/index.js';

/** BullMQ queue of notifications for partners' orders; a group is a partner's id, so that partners take turns (D27). */
export const ORDER_JOBS = 'order-jobs';

export const OrderNotifierModule = notifierModule(ORDER_JOBS);
