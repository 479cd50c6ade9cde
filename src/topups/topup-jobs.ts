import { notifierModule } from '../infra/jobs/index.js';

/** BullMQ queue of notifications for partners' top-ups; a group is a partner's id, so that partners take turns (D27). */
export const TOPUP_JOBS = 'topup-jobs';

export const TopupNotifierModule = notifierModule(TOPUP_JOBS);
