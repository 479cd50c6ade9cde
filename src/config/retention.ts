import type { Mode } from '../common/mode.js';
import { EnvReader } from './env-reader.js';

/**
 * Retention in whole days of data that would otherwise grow forever (D44). Money, Live orders and the audit log are
 * kept.
 */
export interface RetentionConfig {
  readonly callLogDays: number;
  /** Events and ended deliveries by mode; held ones stay at least MIN_HELD_DAYS (D32). */
  readonly eventDays: Readonly<Record<Mode, number>>;
  readonly attemptDays: number;
  /** Orders, eSIMs and top-ups of Sandbox. */
  readonly sandboxOrderDays: number;
  readonly alertDays: number;
  readonly priceHistoryDays: number;
  readonly replayDays: number;
  readonly catalogSyncDays: number;
  /** Endpoints after their deletion. */
  readonly deletedEndpointDays: number;
  /** Quarter-hours of an endpoint's statistics. */
  readonly endpointStatsDays: number;
  /** Portal sessions after their end. */
  readonly portalSessionDays: number;
  /** Install links after their expiry. */
  readonly installLinkDays: number;
}

/** Held deliveries are kept for at least 30 days. */
export const MIN_HELD_DAYS = 30;

/** Changes of the catalog are listed for 30 days. */
export const CATALOG_CHANGE_DAYS = 30;

/** The overview shows 30 days beside the 30 before. */
export const ACTIVITY_DAYS = 62;

const DAYS = { min: 1, max: 3_650 };

export function readRetention(read: EnvReader): RetentionConfig {
  return {
    callLogDays: read.integer('CALL_LOG_RETENTION_DAYS', 30, DAYS),
    eventDays: {
      live: read.integer('EVENT_RETENTION_DAYS', 90, DAYS),
      sandbox: read.integer('SANDBOX_EVENT_RETENTION_DAYS', 30, DAYS),
    },
    attemptDays: read.integer('WEBHOOK_ATTEMPT_RETENTION_DAYS', 30, DAYS),
    sandboxOrderDays: read.integer('SANDBOX_ORDER_RETENTION_DAYS', 90, DAYS),
    alertDays: read.integer('ALERT_RETENTION_DAYS', 90, DAYS),
    priceHistoryDays: read.integer('PRICE_HISTORY_RETENTION_DAYS', 400, DAYS),
    replayDays: read.integer('WEBHOOK_REPLAY_RETENTION_DAYS', 30, DAYS),
    catalogSyncDays: read.integer('CATALOG_SYNC_RETENTION_DAYS', 30, DAYS),
    deletedEndpointDays: read.integer('WEBHOOK_ENDPOINT_RETENTION_DAYS', 30, { min: 30, max: 3_650 }),
    endpointStatsDays: read.integer('WEBHOOK_STATS_RETENTION_DAYS', ACTIVITY_DAYS, { min: 7, max: 3_650 }),
    portalSessionDays: read.integer('PORTAL_SESSION_RETENTION_DAYS', 30, DAYS),
    installLinkDays: read.integer('INSTALL_LINK_RETENTION_DAYS', 30, DAYS),
  };
}

/** For code without settings, such as a migration, which creates partitions but drops none. */
export const DEFAULT_RETENTION = readRetention(new EnvReader({}));
