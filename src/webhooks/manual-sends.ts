import { Injectable } from '@nestjs/common';
import { type AdminOrPortalPrincipal, AdminPrincipal, GcraThrottlerStorage } from '../auth/index.js';
import { AppError } from '../common/errors/index.js';

/** Deliveries of an hour that a session may cause without a step-up: by resends, and by replays (D50). */
export const SENT_WITHOUT_STEP_UP = 1_000;
/** Resends, replays and tests of one partner in a minute. */
export const MANUAL_SENDS_PER_MINUTE = 60;

const MINUTE_MS = 60_000;
const HOUR_MS = 3_600_000;

/** Bounds how often the sessions of a partner together send something by hand, whichever route they take. Admin tokens are not counted. */
@Injectable()
export class ManualSends {
  constructor(private readonly buckets: GcraThrottlerStorage) {}

  /** @throws AppError `rate_limited` beyond `MANUAL_SENDS_PER_MINUTE` */
  async take(caller: AdminOrPortalPrincipal): Promise<void> {
    if (caller instanceof AdminPrincipal) return;
    const bucket = `portal-sends:${caller.partnerId}`;
    const { allowed, headers } = await this.buckets.charge(bucket, MINUTE_MS, MANUAL_SENDS_PER_MINUTE);
    if (allowed) return;
    const detail = `A partner may send again or test at most ${MANUAL_SENDS_PER_MINUTE} times a minute. Wait for Retry-After, or replay a time range.`;
    throw new AppError('rate_limited', { headers, detail });
  }

  /** As `take`, for one resend. @throws also AppError `step_up_required` beyond `SENT_WITHOUT_STEP_UP` in an old session */
  async takeResend(caller: AdminOrPortalPrincipal): Promise<void> {
    await this.take(caller);
    if (caller instanceof AdminPrincipal || caller.isYoung) return;
    const bucket = `portal-resends:${caller.partnerId}`;
    const { allowed } = await this.buckets.charge(bucket, HOUR_MS, SENT_WITHOUT_STEP_UP);
    if (!allowed) caller.assertYoung();
  }
}
