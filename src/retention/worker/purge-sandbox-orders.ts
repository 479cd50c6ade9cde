import { Inject, Injectable } from '@nestjs/common';
import type { Logger } from 'pino';
import { APP_CONFIG, type AppConfig } from '../../config/index.js';
import { EsimsRepository } from '../../esims/index.js';
import {
  isStatementTimeout,
  isTransientConflict,
  mayBeOfOneRow,
  Transactions,
  type Tx,
} from '../../infra/database/index.js';
import { LOGGER } from '../../infra/logging.js';
import { type PurgeStep, purgeWhileMore } from '../../infra/purge-in-steps.js';
import { type OrderAge, type PastOrders, PastOrdersRepository } from '../../orders/index.js';
import { SandboxProviderRepository } from '../../providers/index.js';
import { TopupsRepository } from '../../topups/index.js';

/** Orders per transaction, with up to 20 eSIMs each. */
const BATCH_ORDERS = 50;
/** Top-ups per transaction: an eSIM may have any number of them, and a statement has a minute (D43). */
const BATCH_TOPUPS = 500;

/** Position of a run. */
interface Walk {
  after: OrderAge | null;
  /** Number of orders of a failed step that remain to be tried one by one. */
  alone: number;
  /** Orders locked by the current step; null before it. */
  past: PastOrders | null;
}

/**
 * Deletes Sandbox orders with their eSIMs and top-ups past their retention (D44). An order is deleted as a whole in one
 * transaction, including the simulated provider's records. If it has too many top-ups for one transaction, some of them
 * are deleted in advance. An order is kept while it is open or has a recent or open top-up.
 */
@Injectable()
export class PurgeSandboxOrders {
  constructor(
    @Inject(APP_CONFIG) private readonly config: Pick<AppConfig, 'retention'>,
    @Inject(LOGGER) private readonly logger: Logger,
    private readonly transactions: Transactions,
    private readonly orders: PastOrdersRepository,
    private readonly esims: EsimsRepository,
    private readonly topups: TopupsRepository,
    private readonly provider: SandboxProviderRepository,
  ) {}

  /** Returns the number of deleted orders. An order that cannot be deleted is left to the next run. */
  async purge(stopping?: AbortSignal): Promise<number> {
    const walk: Walk = { after: null, alone: 0, past: null };
    return purgeWhileMore(() => this.step(walk), stopping);
  }

  private async step(walk: Walk): Promise<PurgeStep> {
    const limit = walk.alone > 0 ? 1 : BATCH_ORDERS;
    walk.past = null;
    try {
      const isDone = await this.transactions.run(async (tx) => {
        walk.past = await this.lockNext(tx, walk.after, limit);
        return this.purgeSome(tx, walk.past);
      });
      return isDone ? advance(walk, limit) : { purged: 0, more: true };
    } catch (error) {
      if (!walk.past || !mayBeOfOneOrder(error)) throw error;
      this.afterFailure(walk, walk.past, error);
      return { purged: 0, more: true };
    }
  }

  private lockNext(tx: Tx, after: OrderAge | null, limit: number): Promise<PastOrders> {
    return this.orders.lockSandboxPast(tx, this.config.retention.sandboxOrderDays, { after, limit });
  }

  /** False when they have more top-ups than one transaction deletes: then the orders still exist. */
  private async purgeSome(tx: Tx, { orders }: PastOrders): Promise<boolean> {
    if (orders.length === 0) return true;
    const ids = orders.map(({ id }) => id);
    const esims = await this.esims.listIdsOfOrders(tx, ids);
    const topups = await this.topups.deleteOfEsims(tx, esims, BATCH_TOPUPS);
    const isDone = topups.length < BATCH_TOPUPS;
    if (isDone) {
      await this.esims.deleteOfOrders(tx, ids);
      await this.orders.delete(tx, ids);
    }
    const references = isDone ? orders.map((order) => order.providerReference) : [];
    await this.provider.forget(tx, { orders: references, topups });
    return isDone;
  }

  /**
   * Any of several orders may be the cause, so each is tried alone; one that fails alone must not block all younger
   * ones.
   */
  private afterFailure(walk: Walk, past: PastOrders, error: unknown): void {
    if (past.looked > 1) {
      walk.alone = past.looked;
      return;
    }
    this.logger.error(
      { event: 'retention.order_failed', orderId: past.last?.id, err: error },
      'failed to delete Sandbox order; the next run will retry',
    );
    advance(walk, 1);
  }
}

function advance(walk: Walk, limit: number): PurgeStep {
  const { orders, looked, last } = walk.past!;
  walk.after = last;
  walk.alone = Math.max(0, walk.alone - 1);
  return { purged: orders.length, more: looked === limit };
}

/** Includes timeouts and conflicts caused by an order's own many rows: trying it alone shows which. */
function mayBeOfOneOrder(error: unknown): boolean {
  return mayBeOfOneRow(error) || isStatementTimeout(error) || isTransientConflict(error);
}
