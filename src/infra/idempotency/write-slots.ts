import { Inject, Injectable } from '@nestjs/common';
import { APP_CONFIG, type AppConfig } from '../../config/index.js';
import { ServerContact } from '../database/index.js';
import { CallerSlots } from '../http/index.js';

/** One caller's share of the connections: its wallet is one row, and each call waiting for it holds a connection. */
const SHARE_OF_CALLER = 0.5;
/** Share of the connections for all writes together; the rest is for single reads, while lists have their own share. */
const SHARE_OF_WRITES = 0.75;

/**
 * Limits one caller's concurrent writes, so that calls waiting for one wallet leave connections to everyone else (D43).
 * A partner's Sandbox and Live are two callers (D41).
 */
@Injectable()
export class WriteSlots {
  private readonly slots: CallerSlots;

  constructor(
    @Inject(APP_CONFIG) config: Pick<AppConfig, 'databasePoolMax' | 'databasePoolWaitMs'>,
    contact: ServerContact,
  ) {
    const waitMs = config.databasePoolWaitMs;
    const share = (of: number): number => Math.max(1, Math.floor(config.databasePoolMax * of));
    this.slots = new CallerSlots({
      what: 'writes',
      perCaller: share(SHARE_OF_CALLER),
      most: share(SHARE_OF_WRITES),
      waitMs,
      standsStill: () => contact.isDisturbed(waitMs / 2),
    });
  }

  /**
   * Runs `work` in a write slot of `owner`: a partner and mode, all portal sessions of a partner, or an admin token.
   * @throws AppError `rate_limited` if the owner's own writes hold its slots for the whole wait
   * (`DATABASE_POOL_WAIT_MS`); `service_unavailable` if other owners' writes do, or the database does not respond
   */
  write<T>(owner: string, work: () => Promise<T>): Promise<T> {
    return this.slots.run(owner, work);
  }
}
