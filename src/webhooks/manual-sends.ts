import { Injectable } from '@nestjs/common';
import { HOUR_MS, MINUTE_MS } from '../common/durations.js';
import { type AdminOrPortalPrincipal, AdminPrincipal, GcraThrottlerStorage } from '../auth/index.js';
import { AppError } from '../common/errors/index.js';

/** Deliveries per hour that a session may trigger without a step-up, by resends and replays (D50). */
export const SENT_WITHOUT_STEP_UP = 1_000;
/** Limit of one partner's resends, replays and tests per minute. */
export const MANUAL_SENDS_PER_MINUTE = 60;

/** Limits manual sends of all of a partner's sessions together, on every route. Admin tokens do not count. */
@Injectable()
export class ManualSends {
  constructor(private readonly buckets: GcraThrottlerStorage) {}

  /** @throws AppError `rate_limited` beyond `MANUAL_SENDS_PER_MINUTE` */
  async take(caller: AdminOrPortalPrincipal): Promise<void> {
    if (caller instanceof AdminPrincipal) return;
    const bucket = `portal-sends:${caller.partnerId}`;
    const { allowed, headers } = await this.buckets.charge(bucket, MINUTE_MS, MANUAL_SENDS_PER_MINUTE);
    if (allowed) return;
    const detail = `A partner can resend and test at most ${MANUAL_SENDS_PER_MINUTE} times per minute. Wait for Retry-After, or replay a time range.`;
    throw new AppError('rate_limited', { headers, detail });
  }

  /**
   * Like `take`, for one resend.
   * @throws AppError `rate_limited`; `step_up_required` if an old session exceeds `SENT_WITHOUT_STEP_UP`
   */
  async takeResend(caller: AdminOrPortalPrincipal): Promise<void> {
    await this.take(caller);
    if (caller instanceof AdminPrincipal || caller.isYoung) return;
    const bucket = `portal-resends:${caller.partnerId}`;
    const { allowed } = await this.buckets.charge(bucket, HOUR_MS, SENT_WITHOUT_STEP_UP);
    if (!allowed) caller.assertYoung();
  }
}
