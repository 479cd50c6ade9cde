import { Inject, Injectable } from '@nestjs/common';
import type { Logger } from 'pino';
import { newId } from '../common/ids.js';
import type { Page } from '../common/page.js';
import { APP_CONFIG, type AppConfig } from '../config/index.js';
import { handleApart } from '../infra/batcher.js';
import { type ListOptions, Transactions, type Tx } from '../infra/database/index.js';
import { LOGGER } from '../infra/logging.js';
import { Sweeps } from '../infra/sweeps.js';
import { type AlertEntity, AlertsRepository, type AlertType, type NewAlert } from './alerts.repository.js';

/** Alerts the portal team, in the transaction of the cause. */
@Injectable()
export class Alerts {
  constructor(private readonly alerts: AlertsRepository) {}

  async raise(tx: Tx, alert: NewAlert): Promise<void> {
    await this.alerts.insert(tx, newId('alr'), alert);
  }

  /** Resolves the open alerts about a subject that `selects`, in the transaction that ends their cause. */
  async resolveOf(
    tx: Tx,
    type: AlertType,
    subjectId: string,
    selects: (alert: AlertEntity) => boolean,
  ): Promise<void> {
    const open = await this.alerts.listOpenOf(tx, type, subjectId);
    const ids = open.filter(selects).map(({ id }) => id);
    if (ids.length > 0) await this.alerts.resolve(tx, ids);
  }

  /** For frequent causes: skipped if an alert of the same type and key, with any subject, is younger than `ms`. */
  async raiseUnlessWithin(tx: Tx, alert: RepeatedAlert, ms: number): Promise<void> {
    if (await this.alerts.isToldWithin(tx, alert, ms)) return;
    await this.raise(tx, alert);
  }
}

/** An alert whose cause is found repeatedly. */
export type RepeatedAlert = NewAlert & { readonly onceKey: string };

/** Raises alerts outside any other transaction. */
@Injectable()
export class RepeatedAlerts {
  constructor(
    private readonly alerts: Alerts,
    private readonly transactions: Transactions,
    @Inject(LOGGER) private readonly logger: Logger,
  ) {}

  /**
   * Stores the alerts in one transaction. If one of them cannot be stored, stores the others without it (D43).
   * @throws Error if the database fails
   */
  async raise(alerts: readonly RepeatedAlert[]): Promise<void> {
    if (alerts.length === 0) return;
    await handleApart(alerts, {
      handle: (some) => this.raiseWhole(some),
      failed: ({ type, subjectId }, error) => {
        const line = { event: 'alert.refused', alert: type, subjectId, err: error };
        this.logger.error(line, 'failed to store alert; it will be raised again');
      },
    });
  }

  private async raiseWhole(alerts: readonly RepeatedAlert[]): Promise<void> {
    await this.transactions.run(async (tx) => {
      for (const alert of alerts) await this.alerts.raise(tx, alert);
    });
  }
}

const ALERTS_PER_PAGE = 100;
/** Listed purchases have already waited a quarter of an hour, so another minute does not matter. */
const SWEEPS_BETWEEN = 15;

type ListAlerts = (options: ListOptions) => Promise<Page<RepeatedAlert>>;

/** Alerts support about purchases that need review, by regular passes over whole lists (D22). */
@Injectable()
export class ReviewSweeps {
  private readonly intervalMs: number;

  constructor(
    private readonly alerts: RepeatedAlerts,
    @Inject(APP_CONFIG) { sweepIntervalMs }: Pick<AppConfig, 'sweepIntervalMs'>,
    private readonly sweeps: Sweeps,
  ) {
    this.intervalMs = sweepIntervalMs * SWEEPS_BETWEEN;
  }

  /**
   * Raises the alerts of `list` until the process stops, each with a `onceKey`, because every sweep finds it again.
   * `name` is the sweep's name in the log.
   */
  start(name: string, list: ListAlerts): void {
    const run = (stopping: AbortSignal) => this.raiseAll(list, stopping);
    this.sweeps.register({ name, intervalMs: this.intervalMs, run });
  }

  private async raiseAll(list: ListAlerts, stopping: AbortSignal): Promise<void> {
    let cursor: string | undefined;
    do {
      const page = await list({ limit: ALERTS_PER_PAGE, cursor });
      await this.alerts.raise(page.items);
      cursor = page.nextCursor ?? undefined;
    } while (cursor !== undefined && !stopping.aborted);
  }
}
