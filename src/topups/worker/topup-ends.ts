import { Inject, Injectable } from '@nestjs/common';
import type { Logger } from 'pino';
import type { Mode } from '../../common/mode.js';
import type { Batcher } from '../../infra/batcher.js';
import { Transactions } from '../../infra/database/index.js';
import { batchEnds } from '../../infra/jobs/index.js';
import { LOGGER } from '../../infra/logging.js';
import { CompleteTopup, type TopupEnd } from '../complete-topup.js';

/** Ends top-ups, many in one transaction, Live and Sandbox apart (D41). */
@Injectable()
export class TopupEnds {
  private readonly batchers: Readonly<Record<Mode, Batcher<TopupEnd, boolean>>>;

  constructor(
    transactions: Transactions,
    complete: CompleteTopup,
    @Inject(LOGGER) private readonly logger: Logger,
  ) {
    this.batchers = batchEnds(transactions, (tx, ends) => complete.executeAll(tx, ends));
  }

  /** Resolves when the end is committed, or when its lease is void. @throws the error of the database for this end */
  async add(end: TopupEnd): Promise<void> {
    const { id: topupId, mode } = end.topup;
    if (await this.batchers[mode].add(end)) return;
    this.logger.warn({ event: 'topup.lease_lost', topupId }, 'outcome dropped: lease was taken over');
  }
}
