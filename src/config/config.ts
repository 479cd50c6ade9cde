import { parseAdminTokens, parseSecretKeys, type AdminToken, type SecretKey } from './credentials.js';
import { ConfigError, EnvReader } from './env-reader.js';

export interface ListenAddress {
  readonly host: string;
  readonly port: number;
}

/** Every setting of the service, parsed once at boot; `.env.example` documents each variable. */
export interface AppConfig {
  readonly production: boolean;
  readonly logLevel: 'debug' | 'info' | 'warn' | 'error' | 'silent';
  readonly databaseUrl: string;
  readonly databasePoolMax: number;
  readonly redisUrl: string | null;
  readonly partnerApi: ListenAddress;
  readonly adminApi: ListenAddress;
  readonly ops: ListenAddress;
  readonly adminTokens: readonly AdminToken[];
  readonly secretKeys: readonly SecretKey[];
  readonly trustProxyHops: number;
  readonly rateLimit: { readonly perMinute: number; readonly burst: number };
  readonly webhooks: WebhookConfig;
  readonly provisioning: ProvisioningConfig;
  readonly sweepIntervalMs: number;
  readonly leaseMs: number;
  readonly callLogRetentionDays: number;
  readonly shutdownTimeoutMs: number;
}

/** D36: the document's values are the defaults. */
export interface WebhookConfig {
  readonly timeoutMs: number;
  readonly retryDelaysMs: readonly number[];
  readonly blockMs: number;
  readonly blocksBeforeDisable: number;
  readonly concurrencyPerEndpoint: number;
  readonly allowPrivateTargets: boolean;
  /** New deliveries a second that one replay makes. */
  readonly replayPerSecond: number;
  /** Whole days that attempts are kept, besides today. */
  readonly attemptRetentionDays: number;
}

export interface ProvisioningConfig {
  readonly concurrencyPerPartner: number;
}

const PORTS = { min: 0, max: 65_535 };
const MILLISECONDS = { min: 1, max: 86_400_000 };
const COUNTS = { min: 1, max: 10_000 };

/** Parses `env`. @throws ConfigError that lists every wrong variable. */
export function loadConfig(env: NodeJS.ProcessEnv): AppConfig {
  const read = new EnvReader(env);
  const production =
    read.choice('NODE_ENV', 'development', ['development', 'test', 'production']) === 'production';
  const config: AppConfig = {
    production,
    logLevel: read.choice('LOG_LEVEL', 'info', ['debug', 'info', 'warn', 'error', 'silent']),
    databaseUrl: readDatabaseUrl(read),
    databasePoolMax: read.integer('DATABASE_POOL_MAX', 16, { min: 2, max: 500 }),
    redisUrl: read.url('REDIS_URL', ['redis:', 'rediss:']) ?? null,
    partnerApi: { host: read.text('HOST') ?? '0.0.0.0', port: read.integer('PORT', 3000, PORTS) },
    adminApi: { host: read.text('ADMIN_HOST') ?? '127.0.0.1', port: read.integer('ADMIN_PORT', 3001, PORTS) },
    ops: { host: read.text('OPS_HOST') ?? '127.0.0.1', port: read.integer('OPS_PORT', 3002, PORTS) },
    adminTokens: parseAdminTokens(read),
    secretKeys: parseSecretKeys(read),
    trustProxyHops: read.integer('TRUST_PROXY', 0, { min: 0, max: 10 }),
    rateLimit: {
      perMinute: read.integer('RATE_LIMIT_PER_MINUTE', 60, { min: 1, max: 6_000_000 }),
      burst: read.integer('RATE_LIMIT_BURST', 120, { min: 1, max: 1_000_000 }),
    },
    webhooks: readWebhookConfig(read, production),
    provisioning: {
      concurrencyPerPartner: read.integer('PROVISION_CONCURRENCY_PER_PARTNER', 8, COUNTS),
    },
    sweepIntervalMs: read.integer('SWEEP_INTERVAL_MS', 2_000, { min: 50, max: 60_000 }),
    leaseMs: read.integer('LEASE_MS', 15_000, { min: 500, max: 600_000 }),
    callLogRetentionDays: read.integer('CALL_LOG_RETENTION_DAYS', 30, { min: 1, max: 3_650 }),
    shutdownTimeoutMs: read.integer('SHUTDOWN_TIMEOUT_MS', 4_000, { min: 100, max: 120_000 }),
  };
  if (read.problems.length > 0) throw new ConfigError(read.problems);
  return Object.freeze(config);
}

/** `DATABASE_URL` alone, for `npm run migrate`. @throws ConfigError */
export function readDatabaseSettings(env: NodeJS.ProcessEnv): string {
  const read = new EnvReader(env);
  const url = readDatabaseUrl(read);
  if (read.problems.length > 0) throw new ConfigError(read.problems);
  return url;
}

function readDatabaseUrl(read: EnvReader): string {
  const url = read.url('DATABASE_URL', ['postgres:', 'postgresql:']);
  if (url === undefined && read.text('DATABASE_URL') === undefined) {
    read.problems.push('DATABASE_URL is required (only `npm start` without it runs an embedded PostgreSQL)');
  }
  return url ?? '';
}

function readWebhookConfig(read: EnvReader, production: boolean): WebhookConfig {
  const allowPrivateTargets = read.flag('WEBHOOK_ALLOW_PRIVATE_TARGETS', false);
  if (allowPrivateTargets && production) {
    read.problems.push('WEBHOOK_ALLOW_PRIVATE_TARGETS must not be true with NODE_ENV=production'); // D35
  }
  return {
    timeoutMs: read.integer('WEBHOOK_TIMEOUT_MS', 60_000, MILLISECONDS),
    retryDelaysMs: read.integers('WEBHOOK_RETRY_DELAYS_MS', [30_000, 60_000, 180_000, 300_000, 900_000], {
      min: 0,
      max: 86_400_000,
    }),
    blockMs: read.integer('WEBHOOK_BLOCK_MS', 60_000, MILLISECONDS),
    blocksBeforeDisable: read.integer('WEBHOOK_BLOCKS_BEFORE_DISABLE', 5, { min: 1, max: 1_000 }),
    concurrencyPerEndpoint: read.integer('WEBHOOK_CONCURRENCY_PER_ENDPOINT', 16, COUNTS),
    allowPrivateTargets,
    replayPerSecond: read.integer('WEBHOOK_REPLAY_PER_SECOND', 100, COUNTS),
    attemptRetentionDays: read.integer('WEBHOOK_ATTEMPT_RETENTION_DAYS', 30, { min: 1, max: 3_650 }),
  };
}
