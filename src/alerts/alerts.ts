import { Injectable } from '@nestjs/common';
import { newId } from '../common/ids.js';
import type { Tx } from '../infra/database/index.js';
import type { AlertType } from './alert.entity.js';
import { AlertsRepository } from './alerts.repository.js';

export interface NewAlert {
  readonly type: AlertType;
  readonly partnerId: string | null;
  /** The id of what the alert is about. */
  readonly subjectId: string;
  /** Never a key or a secret. */
  readonly details?: Readonly<Record<string, string | number | boolean | null>>;
  /** The same type, subject and key are reported once, however often they are raised. */
  readonly onceKey?: string;
}

/** Tells the portal team what happened, in the transaction in which it happened. */
@Injectable()
export class Alerts {
  constructor(private readonly alerts: AlertsRepository) {}

  async raise(tx: Tx, alert: NewAlert): Promise<void> {
    await this.alerts.insert(tx, newId('alr'), alert);
  }
}
