import { Inject, Injectable } from '@nestjs/common';
import { APP_CONFIG, type AppConfig } from '../../config/index.js';
import { ServerContact } from '../database/index.js';
import { CallerSlots } from '../http/index.js';

/** Of the connections, for one caller: its own wallet is one row, and whoever waits for it holds a connection. */
const SHARE_OF_CALLER = 0.5;
/** Of the connections, for all writes together: the others are for single reads while lists have theirs. */
const SHARE_OF_WRITES = 0.75;

/**
 * Lets one caller write only so much at a time, so that calls that wait for one wallet leave connections to everybody else
 * (D43). Sandbox and Live of a partner are two callers (D41).
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
   * Writes with a slot of this caller: a partner and mode, a partner's portal sessions together, or an admin token.
   * @throws AppError `rate_limited` when its own writes are in the way for the whole wait (`DATABASE_POOL_WAIT_MS`),
   * `service_unavailable` when those of others are, or the database does not answer
   */
  write<T>(owner: string, work: () => Promise<T>): Promise<T> {
    return this.slots.run(owner, work);
  }
}
