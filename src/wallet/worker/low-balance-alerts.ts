import { Inject, Injectable } from '@nestjs/common';
import { Alerts } from '../../alerts/index.js';
import { APP_CONFIG, type AppConfig } from '../../config/index.js';
import { Transactions } from '../../infra/database/index.js';
import { Sweeps } from '../../infra/sweeps.js';
import { WalletsRepository } from '../wallets.repository.js';

const SIGNALS_PER_SWEEP = 200;

/**
 * Turns the signals of wallets that became low into `balance.low` alerts. The signal is written with the hold, in one
 * statement; the alert takes it over, so that placing an order costs nothing more.
 */
@Injectable()
export class LowBalanceAlerts {
  constructor(
    private readonly wallets: WalletsRepository,
    private readonly alerts: Alerts,
    private readonly transactions: Transactions,
    @Inject(APP_CONFIG) { sweepIntervalMs }: Pick<AppConfig, 'sweepIntervalMs'>,
    sweeps: Sweeps,
  ) {
    sweeps.register({
      name: 'wallets.low',
      intervalMs: sweepIntervalMs,
      run: () => this.raise(),
    });
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
