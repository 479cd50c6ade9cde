import { Inject, Injectable } from '@nestjs/common';
import { APP_CONFIG, type AppConfig } from '../config/index.js';
import { Transactions } from '../infra/database/index.js';
import { Sweeps } from '../infra/sweeps.js';
import { type AlertEntity, AlertsRepository, type AlertType } from './alerts.repository.js';

const ALERTS_PER_PAGE = 100;
const SWEEPS_BETWEEN = 5;

/** Selects the alerts whose cause has ended. */
export type SelectEnded = (alerts: readonly AlertEntity[]) => Promise<readonly AlertEntity[]>;

/**
 * Resolves alerts whose cause has ended, by regular passes over the open ones. Statements that end a cause, such as
 * a deposit or the end of an order, therefore need not look for alerts.
 */
@Injectable()
export class EndedAlerts {
  private readonly intervalMs: number;

  constructor(
    private readonly alerts: AlertsRepository,
    private readonly transactions: Transactions,
    @Inject(APP_CONFIG) { sweepIntervalMs }: Pick<AppConfig, 'sweepIntervalMs'>,
    private readonly sweeps: Sweeps,
  ) {
    this.intervalMs = sweepIntervalMs * SWEEPS_BETWEEN;
  }

  /** Resolves ended alerts of `type` until the process stops. The feature that raises the type calls it once. */
  start(type: AlertType, selectEnded: SelectEnded): void {
    const run = (stopping: AbortSignal) => this.resolveAll(type, selectEnded, stopping);
    this.sweeps.register({ name: `alerts.ended.${type}`, intervalMs: this.intervalMs, run });
  }

  private async resolveAll(type: AlertType, selectEnded: SelectEnded, stopping: AbortSignal): Promise<void> {
    let cursor: string | undefined;
    do {
      const page = await this.alerts.list({ type, state: 'open' }, { limit: ALERTS_PER_PAGE, cursor });
      const ids = (await selectEnded(page.items)).map(({ id }) => id);
      if (ids.length > 0) await this.transactions.run((tx) => this.alerts.resolve(tx, ids));
      cursor = page.nextCursor ?? undefined;
    } while (cursor !== undefined && !stopping.aborted);
  }
}
