import { Inject, Injectable } from '@nestjs/common';
import type { Logger } from 'pino';
import { type AlertEntity, Alerts, EndedAlerts } from '../../alerts/index.js';
import { APP_CONFIG, type AppConfig } from '../../config/index.js';
import { EventRecorder, type NewEvent } from '../../events/index.js';
import { handleApart } from '../../infra/batcher.js';
import { databaseNow, Transactions, type Tx } from '../../infra/database/index.js';
import { LOGGER } from '../../infra/logging.js';
import { Sweeps } from '../../infra/sweeps.js';
import { WalletsRepository } from '../wallets.repository.js';

const BATCH = 200;

/**
 * Turns the signals of low wallets into `balance.low` alerts and `wallet.low` events. The statement of the hold writes
 * the signal, once until the wallet is no longer low, and this sweep takes it. Alerts therefore do not slow down orders.
 */
@Injectable()
export class LowBalanceAlerts {
  constructor(
    private readonly wallets: WalletsRepository,
    private readonly alerts: Alerts,
    ended: EndedAlerts,
    private readonly events: EventRecorder,
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
    ended.start('balance.low', (alerts) => this.selectEnded(alerts));
  }

  /** The alerts whose wallet has not been low all the time since. */
  private async selectEnded(alerts: readonly AlertEntity[]): Promise<readonly AlertEntity[]> {
    const lowSince = await this.wallets.listLowSince(alerts.map(({ subjectId }) => subjectId));
    return alerts.filter(({ subjectId, details, createdAt }) => {
      const since = lowSince.get(`${subjectId} ${String(details['currency'])}`);
      return since === undefined || since > createdAt;
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
    const signals = await this.wallets.takeLowSignals(tx, signalIds);
    for (const { partnerId, currency, available } of signals) {
      const details = { currency, available_amount: available };
      await this.alerts.raise(tx, { type: 'balance.low', partnerId, subjectId: partnerId, details });
    }
    const happenedAt = await databaseNow(tx);
    const events = signals.flatMap(({ partnerId, currency, available, threshold }): NewEvent[] =>
      // The limit may have been lowered since.
      threshold === null || available >= threshold
        ? []
        : [
            {
              type: 'wallet.low',
              mode: 'live',
              partnerId,
              happenedAt,
              data: { currency, available, threshold },
            },
          ],
    );
    await this.events.record(tx, events);
  }
}
