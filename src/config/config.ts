import { type DynamicModule, Global, Module } from '@nestjs/common';
import {
  type ListenAddress,
  type RateLimitConfig,
  readSocketConfig,
  readStatementTimeouts,
  type SocketConfig,
  type StatementTimeouts,
} from './bounds.js';
import { type AdminToken, parseAdminTokens, parseSecretKeys, type SecretKey } from './credentials.js';
import { readDatabaseUrls } from './database-urls.js';
import { ConfigError, EnvReader } from './env-reader.js';
import { type InstallConfig, readInstallConfig } from './install.js';
import {
  LIVE_PROVIDER_NAMES,
  type LivePackageRule,
  type LiveProviderName,
  parseLivePackageRules,
} from './live-package-rules.js';
import { type PortalConfig, readPortalConfig } from './portal.js';
import { readRedisAddress, type RedisAddress } from './redis-address.js';
import { readRetention, type RetentionConfig } from './retention.js';
import { readTracingConfig, type TracingConfig } from './tracing.js';
import { WORKER_JOBS, type WorkerJob } from './worker-jobs.js';

/** Every setting of the service, parsed once at boot; `.env.example` documents each variable. */
export interface AppConfig {
  readonly production: boolean;
  readonly logLevel: 'debug' | 'info' | 'warn' | 'error' | 'silent';
  readonly databaseUrl: string;
  /** Address of the primary itself, bypassing a pooler: for the queue with its LISTEN, session locks and migrations. */
  readonly databaseDirectUrl: string;
  /** Whether `databaseUrl` points to a pooler in transaction mode. */
  readonly databaseIsPooled: boolean;
  readonly databasePoolMax: number;
  /** Milliseconds that a call waits for a connection before it returns 503. */
  readonly databasePoolWaitMs: number;
  /** Whether connections keep prepared statements. */
  readonly databasePrepared: boolean;
  readonly statementTimeouts: StatementTimeouts;
  /** Maximum concurrent list reads per partner and process (D43). */
  readonly listsPerPartner: number;
  /** Null when queues and rate limits are in PostgreSQL. */
  readonly redis: RedisAddress | null;
  readonly partnerApi: ListenAddress;
  readonly adminApi: ListenAddress;
  readonly portal: PortalConfig;
  readonly install: InstallConfig;
  readonly ops: ListenAddress;
  /** The listener for provider callbacks (D3). */
  readonly callbacks: CallbackConfig;
  readonly adminTokens: readonly AdminToken[];
  readonly secretKeys: readonly SecretKey[];
  readonly trustProxyHops: number;
  /** Socket limits of every port. */
  readonly sockets: SocketConfig;
  /** Rate limit per API key (spec section 8, D21). */
  readonly rateLimit: RateLimitConfig;
  /** Units per partner and UTC day in Sandbox: eSIMs, top-ups, simulated steps (D26). */
  readonly sandboxQuotaPerDay: number;
  /** Rate limit per admin token. */
  readonly adminRateLimit: RateLimitConfig;
  readonly webhooks: WebhookConfig;
  readonly provisioning: ProvisioningConfig;
  readonly liveProviders: LiveProvidersConfig;
  /** The jobs that a worker process runs (D68). */
  readonly workerJobs: readonly WorkerJob[];
  readonly sweepIntervalMs: number;
  readonly leaseMs: number;
  readonly retention: RetentionConfig;
  /** Null when tracing is off. */
  readonly tracing: TracingConfig | null;
  /** Interval between two comparisons of all books (D27). */
  readonly reconcileIntervalMs: number;
  /** Orders or top-ups compared with a provider between two checkpoints, at which another worker can continue. */
  readonly reconcilePageSize: number;
  readonly shutdownTimeoutMs: number;
}

/** The defaults are the values of the specification (D36). */
export interface WebhookConfig {
  readonly timeoutMs: number;
  readonly retryDelaysMs: readonly number[];
  readonly blockMs: number;
  readonly blocksBeforeDisable: number;
  readonly concurrencyPerEndpoint: number;
  /** Maximum concurrent attempts per worker process; each is little more than a socket. */
  readonly concurrency: number;
  readonly allowPrivateTargets: boolean;
  /** New deliveries per second and replay. */
  readonly replayPerSecond: number;
}

export interface ProvisioningConfig {
  readonly concurrencyPerPartner: number;
  /** Time limit of one provider call, after which its outcome counts as unknown (D22). */
  readonly providerTimeoutMs: number;
  /** Time limit for a provider's whole catalog; independent of orders. */
  readonly providerCatalogTimeoutMs: number;
  /** Calls per second to one provider, across all processes. */
  readonly providerRequestsPerSecond: number;
  /** How long after a placement a provider's lookups may still not find it. */
  readonly providerReadLagMs: number;
  /** Interval between two synchronizations of the live catalog. */
  readonly catalogSyncIntervalMs: number;
  /** Margin on the cost of a live package in basis points, for partners without a price list. */
  readonly liveMarginBps: number;
  /**
   * Which provider sells which live packages; the first match wins. Empty: each provider sells the packages that it
   * lists.
   */
  readonly livePackageRules: readonly LivePackageRule[];
  /** An order or top-up without an outcome for this long is listed for support. */
  readonly needsReviewAfterMs: number;
}

export interface CallbackConfig extends ListenAddress {
  /** Part of the path, so that strangers cannot send hints; null: callbacks are off. */
  readonly secret: string | null;
  /** Sender addresses or networks that may call; empty allows all. */
  readonly allowedCidrs: readonly string[];
  /** Rate limit per sender address. */
  readonly rateLimit: RateLimitConfig;
  /** Number of proxies in front of this listener, independent of those of the APIs. */
  readonly trustProxyHops: number;
}

/** Provider credentials; null for a provider that this process does not call. */
export interface LiveProvidersConfig {
  /** Providers that the workers are connected to. Processes without credentials sell these providers' packages too. */
  readonly soldNames: readonly LiveProviderName[];
  readonly esimAccess: {
    readonly baseUrl: string;
    readonly accessCode: string;
    readonly secretKey: string;
  } | null;
  readonly zendit: { readonly baseUrl: string; readonly apiKey: string } | null;
}

/** Default of `WEBHOOK_RETRY_DELAYS_MS`, which the OpenAPI documents state (D30). */
export const RETRY_DELAYS_MS: readonly number[] = [30_000, 60_000, 180_000, 300_000, 900_000];
/** Default of `DATABASE_POOL_WAIT_MS`; also used by commands and tests. */
export const DEFAULT_POOL_WAIT_MS = 2_000;
const PORTS = { min: 0, max: 65_535 };
const PROXY_HOPS = { min: 0, max: 10 };
const MILLISECONDS = { min: 1, max: 86_400_000 };
/** Maximum one hour: by default, the next synchronization is due then. */
const CATALOG_MILLISECONDS = { min: 1, max: 3_600_000 };
const COUNTS = { min: 1, max: 10_000 };
const RATES = { min: 1, max: 6_000_000 };
const BURSTS = { min: 1, max: 1_000_000 };
const QUOTAS = { min: 1, max: 1_000_000_000 };

/** Roles that serve the portal or create its sessions; the others need no admin token. */
const PORTAL_ROLES = ['portal', 'admin', 'all'];

/**
 * Parses `env` for a process of `role`, which is null for a process without one.
 * @throws ConfigError that lists every wrong variable
 */
export function loadConfig(env: NodeJS.ProcessEnv, role: string | null = null): AppConfig {
  const read = new EnvReader(env);
  const production =
    read.choice('NODE_ENV', 'development', ['development', 'test', 'production']) === 'production';
  const urls = readDatabaseUrls(read);
  const rateLimit = {
    perMinute: read.integer('RATE_LIMIT_PER_MINUTE', 60, RATES),
    burst: read.integer('RATE_LIMIT_BURST', 120, BURSTS),
  };
  const config: AppConfig = {
    production,
    logLevel: read.choice('LOG_LEVEL', 'info', ['debug', 'info', 'warn', 'error', 'silent']),
    ...urls,
    databasePoolMax: read.integer('DATABASE_POOL_MAX', 16, { min: 2, max: 500 }),
    databasePoolWaitMs: read.integer('DATABASE_POOL_WAIT_MS', DEFAULT_POOL_WAIT_MS, {
      min: 100,
      max: 60_000,
    }),
    databasePrepared:
      read.choice('DATABASE_PREPARED', urls.databaseIsPooled ? 'off' : 'on', ['on', 'off']) === 'on',
    statementTimeouts: readStatementTimeouts(read),
    listsPerPartner: read.integer('LISTS_PER_PARTNER', 2, COUNTS),
    redis: readRedisAddress(read),
    partnerApi: { host: read.text('HOST') ?? '0.0.0.0', port: read.integer('PORT', 3000, PORTS) },
    adminApi: { host: read.text('ADMIN_HOST') ?? '127.0.0.1', port: read.integer('ADMIN_PORT', 3001, PORTS) },
    portal: readPortalConfig(read, { production, usesPortal: role !== null && PORTAL_ROLES.includes(role) }),
    install: readInstallConfig(read, { production, servesPage: role === 'install' }),
    ops: { host: read.text('OPS_HOST') ?? '127.0.0.1', port: read.integer('OPS_PORT', 3002, PORTS) },
    callbacks: readCallbackConfig(read),
    adminTokens: parseAdminTokens(read, { required: role === null || PORTAL_ROLES.includes(role) }),
    secretKeys: parseSecretKeys(read),
    trustProxyHops: read.integer('TRUST_PROXY', 0, PROXY_HOPS),
    sockets: readSocketConfig(read),
    rateLimit,
    sandboxQuotaPerDay: read.integer('SANDBOX_QUOTA_PER_DAY', usualQuota(rateLimit), QUOTAS),
    adminRateLimit: {
      perMinute: read.integer('ADMIN_RATE_LIMIT_PER_MINUTE', 600, RATES),
      burst: read.integer('ADMIN_RATE_LIMIT_BURST', 1_200, BURSTS),
    },
    webhooks: readWebhookConfig(read, production),
    provisioning: {
      concurrencyPerPartner: read.integer('PROVISION_CONCURRENCY_PER_PARTNER', 8, COUNTS),
      providerTimeoutMs: read.integer('PROVIDER_TIMEOUT_MS', 20_000, MILLISECONDS),
      providerCatalogTimeoutMs: read.integer('PROVIDER_CATALOG_TIMEOUT_MS', 300_000, CATALOG_MILLISECONDS),
      providerRequestsPerSecond: read.integer('PROVIDER_REQUESTS_PER_SECOND', 8, COUNTS),
      providerReadLagMs: read.integer('PROVIDER_READ_LAG_MS', 30_000, { min: 0, max: 3_600_000 }),
      catalogSyncIntervalMs: read.integer('CATALOG_SYNC_INTERVAL_MS', 3_600_000, MILLISECONDS),
      liveMarginBps: read.integer('LIVE_MARGIN_BPS', 2_000, { min: 0, max: 100_000 }),
      livePackageRules: parseLivePackageRules(read),
      needsReviewAfterMs: read.integer('NEEDS_REVIEW_AFTER_MS', 900_000, MILLISECONDS),
    },
    liveProviders: readLiveProviders(read, production),
    workerJobs: read.choices('WORKER_JOBS', WORKER_JOBS, WORKER_JOBS),
    sweepIntervalMs: read.integer('SWEEP_INTERVAL_MS', 2_000, { min: 50, max: 60_000 }),
    leaseMs: read.integer('LEASE_MS', 15_000, { min: 500, max: 600_000 }),
    retention: readRetention(read),
    tracing: readTracingConfig(read),
    reconcileIntervalMs: read.integer('RECONCILE_INTERVAL_MS', 86_400_000, MILLISECONDS),
    reconcilePageSize: read.integer('RECONCILE_PAGE_SIZE', 500, { min: 1, max: 5_000 }),
    shutdownTimeoutMs: read.integer('SHUTDOWN_TIMEOUT_MS', 4_000, { min: 100, max: 120_000 }),
  };
  refuseShortReadLag(read, config);
  if (read.problems.length > 0) throw new ConfigError(read.problems);
  return Object.freeze(config);
}

/** One key's calls in 100 minutes, at least 6,000. Load-test installations with a higher rate get more. */
function usualQuota({ perMinute }: RateLimitConfig): number {
  return Math.min(QUOTAS.max, Math.max(6_000, 100 * perMinute));
}

/** A call still in transit to the provider must not count as one that never arrived; tests may use shorter lags. */
function refuseShortReadLag(read: EnvReader, { production, provisioning }: AppConfig): void {
  if (!production || provisioning.providerReadLagMs >= provisioning.providerTimeoutMs) return;
  read.problems.push('PROVIDER_READ_LAG_MS must be at least PROVIDER_TIMEOUT_MS');
}

function readWebhookConfig(read: EnvReader, production: boolean): WebhookConfig {
  const allowPrivateTargets = read.flag('WEBHOOK_ALLOW_PRIVATE_TARGETS', false);
  if (allowPrivateTargets && production) {
    read.problems.push('WEBHOOK_ALLOW_PRIVATE_TARGETS must not be true with NODE_ENV=production'); // D35
  }
  return {
    timeoutMs: read.integer('WEBHOOK_TIMEOUT_MS', 60_000, MILLISECONDS),
    retryDelaysMs: read.integers('WEBHOOK_RETRY_DELAYS_MS', RETRY_DELAYS_MS, { min: 0, max: 86_400_000 }),
    blockMs: read.integer('WEBHOOK_BLOCK_MS', 60_000, MILLISECONDS),
    blocksBeforeDisable: read.integer('WEBHOOK_BLOCKS_BEFORE_DISABLE', 5, { min: 1, max: 1_000 }),
    concurrencyPerEndpoint: read.integer('WEBHOOK_CONCURRENCY_PER_ENDPOINT', 16, COUNTS),
    concurrency: read.integer('WEBHOOK_CONCURRENCY', 2_048, { min: 16, max: 20_000 }),
    allowPrivateTargets,
    replayPerSecond: read.integer('WEBHOOK_REPLAY_PER_SECOND', 100, COUNTS),
  };
}

function readCallbackConfig(read: EnvReader): CallbackConfig {
  const secret = read.text('CALLBACK_SECRET') ?? null;
  if (secret !== null && !/^[A-Za-z0-9_-]{32,128}$/.test(secret))
    read.problems.push('CALLBACK_SECRET must be 32 to 128 letters, digits, - or _');
  return {
    host: read.text('CALLBACK_HOST') ?? '0.0.0.0',
    port: read.integer('CALLBACK_PORT', 3003, PORTS),
    secret,
    allowedCidrs: read.cidrs('CALLBACK_ALLOWED_CIDRS'),
    rateLimit: {
      perMinute: read.integer('CALLBACK_RATE_LIMIT_PER_MINUTE', 6_000, RATES),
      burst: read.integer('CALLBACK_RATE_LIMIT_BURST', 12_000, BURSTS),
    },
    trustProxyHops: read.integer('CALLBACK_TRUST_PROXY', 0, PROXY_HOPS),
  };
}

function readLiveProviders(read: EnvReader, production: boolean): LiveProvidersConfig {
  const protocols = production ? ['https:'] : ['https:', 'http:'];
  const esimAccess = readTogether(read, ['ESIM_ACCESS_CODE', 'ESIM_ACCESS_SECRET']);
  const zendit = readTogether(read, ['ZENDIT_API_KEY']);
  const esimAccessUrl = read.url('ESIM_ACCESS_BASE_URL', protocols) ?? 'https://api.esimaccess.com';
  const zenditUrl = read.url('ZENDIT_BASE_URL', protocols) ?? 'https://api.zendit.io/v1';
  return {
    soldNames: read.choices('LIVE_PROVIDERS', [], LIVE_PROVIDER_NAMES),
    esimAccess: esimAccess && {
      baseUrl: esimAccessUrl,
      accessCode: esimAccess[0]!,
      secretKey: esimAccess[1]!,
    },
    zendit: zendit && { baseUrl: zenditUrl, apiKey: zendit[0]! },
  };
}

/** Credentials that are only valid together; null when none is set. */
function readTogether(read: EnvReader, names: readonly string[]): readonly string[] | null {
  const values = names.map((name) => read.text(name));
  if (values.every((value) => value === undefined)) return null;
  values.forEach((value, i) => {
    if (value === undefined)
      read.problems.push(`${names[i]} is required beside ${names.filter((_, j) => j !== i).join(', ')}`);
  });
  return values.map((value) => value ?? '');
}

/** Injection token of the parsed settings: `@Inject(APP_CONFIG) config: AppConfig`. */
export const APP_CONFIG = Symbol('APP_CONFIG');

@Global()
@Module({})
export class ConfigModule {
  static of(config: AppConfig): DynamicModule {
    return {
      module: ConfigModule,
      providers: [{ provide: APP_CONFIG, useValue: config }],
      exports: [APP_CONFIG],
    };
  }
}
