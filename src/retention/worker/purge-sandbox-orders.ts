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

/** Orders of one transaction: up to 20 eSIMs each. */
const BATCH_ORDERS = 50;
/** Top-ups of one transaction: an eSIM may have any number of them, and a statement has a minute (D43). */
const BATCH_TOPUPS = 500;

/** Where a run is. */
interface Walk {
  after: OrderAge | null;
  /** Orders of a failed step that are still to be tried one by one. */
  alone: number;
  /** What the step under way has locked; null before that. */
  past: PastOrders | null;
}

/**
 * Deletes what Sandbox ordered, issued and topped up, past its retention (D44): an order goes whole, with its eSIMs,
 * their top-ups and what the simulated provider remembers of them, in one transaction. Only of top-ups too many for one,
 * some go before it. One that is open stays, and so does one with a top-up that is young or open.
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

  /** Answers how many orders are gone. An order that cannot be deleted is left to the next run. */
  async execute(stopping?: AbortSignal): Promise<number> {
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

  /** False when their top-ups are more than one transaction deletes: then the orders are still there. */
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

  /** One of several may be to blame, so each is tried alone; one that fails alone must not keep all younger ones. */
  private afterFailure(walk: Walk, past: PastOrders, error: unknown): void {
    if (past.looked > 1) {
      walk.alone = past.looked;
      return;
    }
    this.logger.error(
      { event: 'retention.order_failed', orderId: past.last?.id, err: error },
      'a Sandbox order cannot be deleted; the next run tries again',
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

/** Too many rows of one, or a conflict over them, are its own fault as well: alone it shows. */
function mayBeOfOneOrder(error: unknown): boolean {
  return mayBeOfOneRow(error) || isStatementTimeout(error) || isTransientConflict(error);
}
