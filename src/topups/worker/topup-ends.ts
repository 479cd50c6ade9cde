import { Inject, Injectable } from '@nestjs/common';
import type { Logger } from 'pino';
import { Transactions } from '../../infra/database/index.js';
import { JobEnds } from '../../infra/jobs/index.js';
import { LOGGER } from '../../infra/logging.js';
import { CompleteTopup, type TopupEnd } from '../complete-topup.js';

/** Ends top-ups, many in one transaction. */
@Injectable()
export class TopupEnds extends JobEnds<TopupEnd> {
  constructor(transactions: Transactions, complete: CompleteTopup, @Inject(LOGGER) logger: Logger) {
    super({
      name: 'topup',
      transactions,
      logger,
      modeOf: ({ topup }) => topup.mode,
      about: ({ topup }) => ({ topupId: topup.id }),
      write: (tx, ends) => complete.executeAll(tx, ends),
    });
  }
}
