import { Inject, Injectable } from '@nestjs/common';
import { newId } from '../common/ids.js';
import type { Page } from '../common/page.js';
import { APP_CONFIG, type AppConfig } from '../config/index.js';
import { type ListOptions, Transactions, type Tx } from '../infra/database/index.js';
import { Sweeps } from '../infra/sweeps.js';
import { AlertsRepository, type NewAlert } from './alerts.repository.js';

/** Tells the portal team what happened, in the transaction in which it happened. */
@Injectable()
export class Alerts {
  constructor(private readonly alerts: AlertsRepository) {}

  async raise(tx: Tx, alert: NewAlert): Promise<void> {
    await this.alerts.insert(tx, newId('alr'), alert);
  }

  /** For what may happen often: not when one of the same type and key, whatever its subject, is younger than `ms`. */
  async raiseUnlessWithin(tx: Tx, alert: NewAlert & { readonly onceKey: string }, ms: number): Promise<void> {
    if (await this.alerts.isToldWithin(tx, alert, ms)) return;
    await this.raise(tx, alert);
  }
}

const ALERTS_PER_PAGE = 100;
/** What is listed has waited a quarter of an hour before: nobody waits for the minute. */
const SWEEPS_BETWEEN = 15;

/** Tells support of what waits for its review: goes through whole lists, again and again (D22). */
@Injectable()
export class ReviewSweeps {
  private readonly intervalMs: number;

  constructor(
    private readonly alerts: Alerts,
    private readonly transactions: Transactions,
    @Inject(APP_CONFIG) { sweepIntervalMs }: Pick<AppConfig, 'sweepIntervalMs'>,
    private readonly sweeps: Sweeps,
  ) {
    this.intervalMs = sweepIntervalMs * SWEEPS_BETWEEN;
  }

  /**
   * Raises the alerts of `list` until the process stops, each with a `onceKey`: it is met in every sweep. `name` is
   * that of the sweep in the log.
   */
  start(name: string, list: (options: ListOptions) => Promise<Page<NewAlert & { onceKey: string }>>): void {
    this.sweeps.register({ name, intervalMs: this.intervalMs, run: () => this.raiseAll(list) });
  }

  private async raiseAll(list: (options: ListOptions) => Promise<Page<NewAlert>>): Promise<void> {
    let cursor: string | undefined;
    do {
      const page = await list({ limit: ALERTS_PER_PAGE, cursor });
      await this.transactions.run(async (tx) => {
        for (const alert of page.items) await this.alerts.raise(tx, alert);
      });
      cursor = page.nextCursor ?? undefined;
    } while (cursor !== undefined);
  }
}
