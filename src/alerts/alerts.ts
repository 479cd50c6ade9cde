import { Injectable } from '@nestjs/common';
import { newId } from '../common/ids.js';
import type { Tx } from '../infra/database/index.js';
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
