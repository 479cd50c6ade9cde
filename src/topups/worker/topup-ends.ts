import { Inject, Injectable } from '@nestjs/common';
import type { Logger } from 'pino';
import { perMode } from '../../common/mode.js';
import { Batcher } from '../../infra/batcher.js';
import { limitLockWait, Transactions } from '../../infra/database/index.js';
import { LOCKING_BATCHES, lockWaitMs } from '../../infra/jobs/index.js';
import { LOGGER } from '../../infra/logging.js';
import { CompleteTopup, type TopupEnd } from '../complete-topup.js';

const GATHER_MS = 5;

/** Ends top-ups, many in one transaction, Live and Sandbox apart (D41). */
@Injectable()
export class TopupEnds {
  private readonly batchers = perMode(
    () =>
      new Batcher<TopupEnd, boolean>({
        ...LOCKING_BATCHES,
        gather: GATHER_MS,
        handle: (ends, failures) => this.write(ends, lockWaitMs(failures)),
      }),
  );

  constructor(
    private readonly transactions: Transactions,
    private readonly complete: CompleteTopup,
    @Inject(LOGGER) private readonly logger: Logger,
  ) {}

  /** Resolves when the end is committed, or when its lease is void. @throws the error of the database for this end */
  async add(end: TopupEnd): Promise<void> {
    const { id: topupId, mode } = end.topup;
    if (await this.batchers[mode].add(end)) return;
    this.logger.warn({ event: 'topup.lease_lost', topupId }, 'outcome dropped: lease was taken over');
  }

  private write(ends: readonly TopupEnd[], lockMs: number): Promise<readonly boolean[]> {
    return this.transactions.run((tx) => {
      limitLockWait(tx, lockMs);
      return this.complete.executeAll(tx, ends);
    });
  }
}
