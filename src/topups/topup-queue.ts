import { wakeUpsModule } from '../infra/queue/index.js';

/** BullMQ queue of wake-ups for partners' top-ups; a lane is a partner's id, so that partners take turns (D27). */
export const TOPUP_WAKE_UPS = 'topup-wake-ups';

export const TopupWakeUpsModule = wakeUpsModule(TOPUP_WAKE_UPS);
