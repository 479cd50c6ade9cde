import { wakeUpsModule } from '../infra/queue/index.js';

/** BullMQ queue of wake-ups for partners' orders; a lane is a partner's id, so that partners take turns (D27). */
export const ORDER_WAKE_UPS = 'order-wake-ups';

export const OrderWakeUpsModule = wakeUpsModule(ORDER_WAKE_UPS);
