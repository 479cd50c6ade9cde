import {
  type BeforeApplicationShutdown,
  Inject,
  Injectable,
  type OnApplicationBootstrap,
} from '@nestjs/common';
import type { Logger } from 'pino';
import { Alerts } from '../../alerts/index.js';
import { APP_CONFIG, type AppConfig } from '../../config/index.js';
import { Transactions } from '../../infra/database/index.js';
import { LOGGER } from '../../infra/logging/index.js';
import { Sweeper } from '../../infra/sweeping/index.js';
import { OrdersNeedingReview } from '../orders-needing-review.js';

const ORDERS_PER_PAGE = 100;
/** An order waits a quarter of an hour before it is listed: nobody waits for the minute. */
const SWEEPS_BETWEEN = 15;

/** Raises `order.needs_review` once for each order, or cancellation, that the upstream owes an answer (D22). */
@Injectable()
export class ReviewAlerts implements OnApplicationBootstrap, BeforeApplicationShutdown {
  private readonly sweeper: Sweeper;

  constructor(
    private readonly reviews: OrdersNeedingReview,
    private readonly alerts: Alerts,
    private readonly transactions: Transactions,
    @Inject(APP_CONFIG) { sweepIntervalMs }: Pick<AppConfig, 'sweepIntervalMs'>,
    @Inject(LOGGER) logger: Logger,
  ) {
    this.sweeper = new Sweeper({
      name: 'orders.reviews',
      intervalMs: sweepIntervalMs * SWEEPS_BETWEEN,
      logger,
      run: () => this.raiseAll(),
    });
  }

  onApplicationBootstrap(): void {
    this.sweeper.start();
  }

  async beforeApplicationShutdown(): Promise<void> {
    await this.sweeper.stop();
  }

  private async raiseAll(): Promise<void> {
    let cursor: string | undefined;
    do {
      const page = await this.reviews.list({ limit: ORDERS_PER_PAGE, cursor });
      await this.transactions.run(async (tx) => {
        for (const { order, since } of page.items) {
          const { id: subjectId, partnerId, status, provider } = order;
          const details = { status, provider, since: since.toISOString() };
          await this.alerts.raise(tx, {
            type: 'order.needs_review',
            partnerId,
            subjectId,
            details,
            onceKey: status,
          });
        }
      });
      cursor = page.nextCursor ?? undefined;
    } while (cursor !== undefined);
  }
}
