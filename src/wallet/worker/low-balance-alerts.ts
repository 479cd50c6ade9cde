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
import { WalletsRepository } from '../wallets.repository.js';

const SIGNALS_PER_SWEEP = 200;

/**
 * Turns the signals of wallets that became low into `balance.low` alerts. The signal is written with the hold, in one
 * statement; the alert takes it over, so that placing an order costs nothing more.
 */
@Injectable()
export class LowBalanceAlerts implements OnApplicationBootstrap, BeforeApplicationShutdown {
  private readonly sweeper: Sweeper;

  constructor(
    private readonly wallets: WalletsRepository,
    private readonly alerts: Alerts,
    private readonly transactions: Transactions,
    @Inject(APP_CONFIG) { sweepIntervalMs }: Pick<AppConfig, 'sweepIntervalMs'>,
    @Inject(LOGGER) logger: Logger,
  ) {
    this.sweeper = new Sweeper({
      name: 'wallets.low',
      intervalMs: sweepIntervalMs,
      logger,
      run: () => this.raise(),
    });
  }

  onApplicationBootstrap(): void {
    this.sweeper.start();
  }

  async beforeApplicationShutdown(): Promise<void> {
    await this.sweeper.stop();
  }

  private async raise(): Promise<void> {
    await this.transactions.run(async (tx) => {
      for (const { partnerId, currency, available } of await this.wallets.takeLowSignals(
        tx,
        SIGNALS_PER_SWEEP,
      )) {
        const details = { currency, available_amount: available };
        await this.alerts.raise(tx, { type: 'balance.low', partnerId, subjectId: partnerId, details });
      }
    });
  }
}
