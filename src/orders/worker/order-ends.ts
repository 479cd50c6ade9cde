import { Inject, Injectable } from '@nestjs/common';
import type { Logger } from 'pino';
import type { Mode } from '../../common/mode.js';
import { limitLockWait, Transactions } from '../../infra/database/index.js';
import { GroupCommit } from '../../infra/group-commit.js';
import { LOGGER } from '../../infra/logging.js';
import { CompleteOrder, type OrderEnd } from '../complete-order.js';

const MAX_BATCH = 64;
const GATHER_MS = 5;
const MAX_UNDER_WAY = 4;
/** A wallet or an order that somebody else holds for longer is waited for by its own order alone. */
const SHARED_LOCK_WAIT_MS = 500;

/**
 * Ends orders, those that end at about the same time in one transaction. Live and Sandbox have transactions of their
 * own: nothing that Sandbox waits for delays an order that is paid for (D41).
 */
@Injectable()
export class OrderEnds {
  private readonly commits: Readonly<Record<Mode, GroupCommit<OrderEnd, boolean>>>;

  constructor(
    private readonly transactions: Transactions,
    private readonly complete: CompleteOrder,
    @Inject(LOGGER) private readonly logger: Logger,
  ) {
    this.commits = { live: this.groupCommit(), sandbox: this.groupCommit() };
  }

  /** Resolves when the end is committed, or its lease was void. @throws what PostgreSQL says of this order */
  async add(end: OrderEnd): Promise<void> {
    const isEnded = await this.commits[end.order.mode].add(end);
    if (!isEnded)
      this.logger.warn({ event: 'order.lease_lost', orderId: end.order.id }, 'another worker has the order');
  }

  private groupCommit(): GroupCommit<OrderEnd, boolean> {
    return new GroupCommit<OrderEnd, boolean>({
      commit: (ends) => this.commit(ends),
      batchFailed: (ends, error) =>
        this.logger.warn(
          { event: 'order.batch_failed', count: ends.length, err: error },
          'each order of the batch is ended alone',
        ),
      maxItems: MAX_BATCH,
      gatherMs: GATHER_MS,
      maxUnderWay: MAX_UNDER_WAY,
    });
  }

  private commit(ends: readonly OrderEnd[]): Promise<readonly boolean[]> {
    return this.transactions.run(async (tx) => {
      if (ends.length > 1) limitLockWait(tx, SHARED_LOCK_WAIT_MS);
      return this.complete.executeAll(tx, ends);
    });
  }
}
