import { Inject, Injectable } from '@nestjs/common';
import type { Logger } from 'pino';
import { perMode } from '../../common/mode.js';
import { Batcher } from '../../infra/batcher.js';
import { limitLockWait, Transactions } from '../../infra/database/index.js';
import { LOCKING_BATCHES, lockWaitMs } from '../../infra/jobs/index.js';
import { LOGGER } from '../../infra/logging.js';
import { CompleteOrder, type OrderEnd } from '../complete-order.js';

const GATHER_MS = 5;

/** Ends orders, many in one transaction, Live and Sandbox apart (D41). */
@Injectable()
export class OrderEnds {
  private readonly batchers = perMode(
    () =>
      new Batcher<OrderEnd, boolean>({
        ...LOCKING_BATCHES,
        gather: GATHER_MS,
        handle: (ends, failures) => this.write(ends, lockWaitMs(failures)),
      }),
  );

  constructor(
    private readonly transactions: Transactions,
    private readonly complete: CompleteOrder,
    @Inject(LOGGER) private readonly logger: Logger,
  ) {}

  /** Resolves when the end is committed, or when its lease is void. @throws the error of the database for this end */
  async add(end: OrderEnd): Promise<void> {
    const { id: orderId, mode } = end.order;
    if (await this.batchers[mode].add(end)) return;
    this.logger.warn({ event: 'order.lease_lost', orderId }, 'outcome dropped: lease was taken over');
  }

  private write(ends: readonly OrderEnd[], lockMs: number): Promise<readonly boolean[]> {
    return this.transactions.run((tx) => {
      limitLockWait(tx, lockMs);
      return this.complete.executeAll(tx, ends);
    });
  }
}
