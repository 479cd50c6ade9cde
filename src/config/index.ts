/**
 * The settings of the process, parsed from the environment once at boot (D2, D37); `.env.example` explains each.
 * `loadConfig` reports every wrong variable at once; `@Inject(APP_CONFIG)` injects the settings.
 */
export type { ListenAddress, RateLimitConfig } from './bounds.js';
export {
  APP_CONFIG,
  type AppConfig,
  ConfigModule,
  DEFAULT_POOL_WAIT_MS,
  loadConfig,
  RETRY_DELAYS_MS,
  type WebhookConfig,
} from './config.js';
export { readDatabaseSettings, readResealSettings } from './command-settings.js';
export { parseDatabaseUrl } from './database-urls.js';
export type { AdminToken, SecretKey } from './credentials.js';
export { ConfigError } from './env-reader.js';
export type { LivePackageRule, LiveProviderName } from './live-package-rules.js';
export type { InstallConfig } from './install.js';
export type { PortalBrand, PortalConfig } from './portal.js';
export type { RedisAddress, RedisBehindSentinels } from './redis-address.js';
export {
  ACTIVITY_DAYS,
  CATALOG_CHANGE_DAYS,
  DEFAULT_RETENTION,
  MIN_HELD_DAYS,
  type RetentionConfig,
} from './retention.js';
export type { TracingConfig } from './tracing.js';
export { WORKER_JOBS, type WorkerJob } from './worker-jobs.js';
