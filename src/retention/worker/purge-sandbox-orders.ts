import { Inject, Injectable } from '@nestjs/common';
import { APP_CONFIG, type AppConfig } from '../../config/index.js';
import { EsimsRepository } from '../../esims/index.js';
import { Transactions, type Tx } from '../../infra/database/index.js';
import { purgeInSteps } from '../../infra/purge-in-steps.js';
import { OrdersRepository } from '../../orders/index.js';
import { SandboxProviderRepository } from '../../providers/index.js';
import { TopupsRepository } from '../../topups/index.js';

/** Orders of one transaction: up to 20 eSIMs each, and their top-ups. */
const BATCH_ORDERS = 50;

/**
 * Deletes what Sandbox ordered, issued and topped up, past its retention (D44): an order goes whole, with its eSIMs,
 * their top-ups and what the simulated provider remembers of them, in one transaction. One that is open stays, and so
 * does one with a top-up that is young or open.
 */
@Injectable()
export class PurgeSandboxOrders {
  constructor(
    @Inject(APP_CONFIG) private readonly config: Pick<AppConfig, 'retention'>,
    private readonly transactions: Transactions,
    private readonly orders: OrdersRepository,
    private readonly esims: EsimsRepository,
    private readonly topups: TopupsRepository,
    private readonly provider: SandboxProviderRepository,
  ) {}

  /** Answers how many orders are gone. */
  async execute(stopping?: AbortSignal): Promise<number> {
    return purgeInSteps((limit) => this.transactions.run((tx) => this.purgeSome(tx, limit)), {
      batchRows: BATCH_ORDERS,
      stopping,
    });
  }

  private async purgeSome(tx: Tx, limit: number): Promise<number> {
    const orders = await this.orders.lockSandboxPast(tx, this.config.retention.sandboxOrderDays, limit);
    if (orders.length === 0) return 0;
    const ids = orders.map(({ id }) => id);
    const esims = await this.esims.listIdsOfOrders(tx, ids);
    const topups = await this.topups.deleteOfEsims(tx, esims);
    await this.esims.deleteOfOrders(tx, ids);
    await this.orders.delete(tx, ids);
    await this.provider.forget(tx, { orders: orders.map((order) => order.providerReference), topups });
    return orders.length;
  }
}
