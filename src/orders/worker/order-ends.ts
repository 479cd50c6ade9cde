import { Inject, Injectable } from '@nestjs/common';
import type { Logger } from 'pino';
import type { Mode } from '../../common/mode.js';
import type { Batcher } from '../../infra/batcher.js';
import { Transactions } from '../../infra/database/index.js';
import { batchEnds } from '../../infra/jobs/index.js';
import { LOGGER } from '../../infra/logging.js';
import { CompleteOrder, type OrderEnd } from '../complete-order.js';

/** Ends orders, many in one transaction, Live and Sandbox apart (D41). */
@Injectable()
export class OrderEnds {
  private readonly batchers: Readonly<Record<Mode, Batcher<OrderEnd, boolean>>>;

  constructor(
    transactions: Transactions,
    complete: CompleteOrder,
    @Inject(LOGGER) private readonly logger: Logger,
  ) {
    this.batchers = batchEnds(transactions, (tx, ends) => complete.executeAll(tx, ends));
  }

  /** Resolves when the end is committed, or when its lease is void. @throws the error of the database for this end */
  async add(end: OrderEnd): Promise<void> {
    const { id: orderId, mode } = end.order;
    if (await this.batchers[mode].add(end)) return;
    this.logger.warn({ event: 'order.lease_lost', orderId }, 'outcome dropped: lease was taken over');
  }
}
