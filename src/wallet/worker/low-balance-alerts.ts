import { Inject, Injectable } from '@nestjs/common';
import type { Logger } from 'pino';
import { Alerts } from '../../alerts/index.js';
import { APP_CONFIG, type AppConfig } from '../../config/index.js';
import { handleApart } from '../../infra/batcher.js';
import { Transactions, type Tx } from '../../infra/database/index.js';
import { LOGGER } from '../../infra/logging.js';
import { Sweeps } from '../../infra/sweeps.js';
import { WalletsRepository } from '../wallets.repository.js';

const BATCH = 200;

/**
 * Turns the signals of low wallets into `balance.low` alerts. The statement of the hold writes the signal, and this
 * sweep raises the alert, so that alerts do not slow down orders.
 */
@Injectable()
export class LowBalanceAlerts {
  constructor(
    private readonly wallets: WalletsRepository,
    private readonly alerts: Alerts,
    private readonly transactions: Transactions,
    @Inject(APP_CONFIG) { sweepIntervalMs }: Pick<AppConfig, 'sweepIntervalMs'>,
    @Inject(LOGGER) private readonly logger: Logger,
    sweeps: Sweeps,
  ) {
    sweeps.register({
      name: 'wallets.low',
      intervalMs: sweepIntervalMs,
      run: (stopping) => this.raiseAll(stopping),
    });
  }

  /** One pass over all signals, oldest first, so that signals that cannot become alerts do not hide later ones. */
  private async raiseAll(stopping: AbortSignal): Promise<void> {
    let ids: readonly string[] = [];
    do {
      ids = await this.wallets.listLowSignals(ids.at(-1) ?? '0', BATCH);
      await this.raiseApart(ids);
    } while (ids.length === BATCH && !stopping.aborted);
  }

  /** Raises the alerts in one transaction. If one fails, its signal stays and the others are raised (D43). */
  private async raiseApart(ids: readonly string[]): Promise<void> {
    if (ids.length === 0) return;
    await handleApart(ids, {
      handle: (some) => this.transactions.run((tx) => this.raise(tx, some)),
      failed: (signalId, error) => {
        const line = { event: 'wallet.low_signal_refused', signalId, err: error };
        this.logger.error(line, 'failed to raise low-balance alert; the next run will retry');
      },
    });
  }

  private async raise(tx: Tx, signalIds: readonly string[]): Promise<void> {
    for (const { partnerId, currency, available } of await this.wallets.takeLowSignals(tx, signalIds)) {
      const details = { currency, available_amount: available };
      await this.alerts.raise(tx, { type: 'balance.low', partnerId, subjectId: partnerId, details });
    }
  }
}
