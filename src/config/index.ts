export {
  loadConfig,
  readDatabaseSettings,
  type AppConfig,
  type RateLimitConfig,
  type ListenAddress,
  type WebhookConfig,
} from './config.js';
export { APP_CONFIG, ConfigModule } from './config.module.js';
export type { AdminToken, SecretKey } from './credentials.js';
export { ConfigError } from './env-reader.js';
export type { LivePackageRule } from './live-package-rules.js';
