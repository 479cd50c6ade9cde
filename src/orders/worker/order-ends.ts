import { Inject, Injectable } from '@nestjs/common';
import type { Logger } from 'pino';
import { Transactions } from '../../infra/database/index.js';
import { JobEnds } from '../../infra/jobs/index.js';
import { LOGGER } from '../../infra/logging.js';
import { CompleteOrder, type OrderEnd } from '../complete-order.js';

/** Ends orders, many in one transaction. */
@Injectable()
export class OrderEnds extends JobEnds<OrderEnd> {
  constructor(transactions: Transactions, complete: CompleteOrder, @Inject(LOGGER) logger: Logger) {
    super({
      name: 'order',
      transactions,
      logger,
      modeOf: ({ order }) => order.mode,
      about: ({ order }) => ({ orderId: order.id }),
      write: (tx, ends) => complete.executeAll(tx, ends),
    });
  }
}
