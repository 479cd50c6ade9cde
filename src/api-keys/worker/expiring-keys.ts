import { Inject, Injectable } from '@nestjs/common';
import { type AlertEntity, EndedAlerts, type RepeatedAlert, RepeatedAlerts } from '../../alerts/index.js';
import { APP_CONFIG, type AppConfig } from '../../config/index.js';
import { Sweeps } from '../../infra/sweeps.js';
import type { ApiKeyEntity } from '../api-key.entity.js';
import { ApiKeysRepository } from '../api-keys.repository.js';

const WARN_BEFORE_DAYS = 7;
const KEYS_PER_SWEEP = 500;
/** Minutes do not matter for a warning a week ahead. Never runs more often than the sweeps for due work. */
const SWEEPS_BETWEEN = 30;

/** Raises `key.expiring` once per key, a week before it expires (D15, `GET /alerts`). */
@Injectable()
export class ExpiringKeys {
  private after = '';

  constructor(
    private readonly keys: ApiKeysRepository,
    private readonly alerts: RepeatedAlerts,
    ended: EndedAlerts,
    @Inject(APP_CONFIG) { sweepIntervalMs }: AppConfig,
    sweeps: Sweeps,
  ) {
    sweeps.register({
      name: 'api_keys.expiring',
      intervalMs: sweepIntervalMs * SWEEPS_BETWEEN,
      run: () => this.warn(),
    });
    ended.start('key.expiring', (alerts) => this.selectEnded(alerts));
  }

  /** The alerts whose key has expired, was revoked or replaced, or expires at another time. */
  private async selectEnded(alerts: readonly AlertEntity[]): Promise<readonly AlertEntity[]> {
    const expiring = await this.keys.listExpiringByIds(alerts.map(({ subjectId }) => subjectId));
    return alerts.filter(
      ({ subjectId, details }) => expiring.get(subjectId)?.expiresAt?.toISOString() !== details['expires_at'],
    );
  }

  /** Cycles through the keys in id order; raising an alert again has no effect. */
  private async warn(): Promise<void> {
    const keys = await this.keys.listExpiring(WARN_BEFORE_DAYS, this.after, KEYS_PER_SWEEP);
    await this.alerts.raise(keys.map(toAlert));
    this.after = keys.length < KEYS_PER_SWEEP ? '' : keys.at(-1)!.id;
  }
}

function toAlert({ id, partnerId, mode, expiresAt }: ApiKeyEntity): RepeatedAlert {
  const expires_at = expiresAt!.toISOString();
  const details = { mode, expires_at };
  return { type: 'key.expiring', partnerId, subjectId: id, details, onceKey: expires_at };
}
