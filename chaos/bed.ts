import { randomBytes } from 'node:crypto';
import { type Behavior, Receiver, TROUBLES } from './receivers.js';
import { setTimeout as sleep } from 'node:timers/promises';
import { type RoleEnd, type RoleName, ROOT, RoleProcess, runCommand, SimulatorProcess } from './processes.js';
import { DatabaseProxy } from './database-proxy.js';
import { Postgres, RedisServer } from './stores.js';

export type Mode = 'sandbox' | 'live';

export interface ChaosPartner {
  readonly id: string;
  readonly keys: Readonly<Record<Mode, string>>;
}

export interface Endpoint {
  readonly id: string;
  readonly path: string;
  readonly receiver: Receiver;
}

const PARTNERS = 6;
const SANDBOX_PACKAGES = [
  ...['pkg_fr_1gb_7d', 'pkg_fr_1gb_7d', 'pkg_de_1gb_7d', 'pkg_it_1gb_7d'],
  ...['pkg_fr_2gb_daily', 'pkg_test_timeout', 'pkg_test_partial', 'pkg_test_out_of_stock'],
];
/** Small base packages of both wholesalers, and a day pass. */
const LIVE_UPSTREAM_IDS = ['PDE1D7', 'PTR1D7', 'JP_DAILY', 'ESIM-FR-7D-1GB', 'ESIM-ES-7D-1GB'];
/** Minor units. No run uses it up. */
const DEPOSIT = 100_000_000;
const CATALOG_LIMIT_MS = 120_000;
/** The same value as `minReadySeconds` in the chart. */
const MIN_READY_MS = 10_000;

/**
 * Short, so that a run of a few minutes sees many lapsed leases, retries and blocked endpoints. The read lag is longer
 * than the time in which a slow call may still take effect.
 */
const SETTINGS = {
  NODE_ENV: 'test',
  LOG_LEVEL: 'silent',
  LEASE_MS: '4000',
  SWEEP_INTERVAL_MS: '500',
  DATABASE_POOL_MAX: '12',
  WEBHOOK_ALLOW_PRIVATE_TARGETS: 'true',
  WEBHOOK_TIMEOUT_MS: '2000',
  WEBHOOK_RETRY_DELAYS_MS: '200,500,1000,2000,4000',
  WEBHOOK_BLOCK_MS: '2000',
  PROVIDER_REQUESTS_PER_SECOND: '500',
  PROVIDER_TIMEOUT_MS: '2000',
  PROVIDER_READ_LAG_MS: '3500',
  NEEDS_REVIEW_AFTER_MS: '60000',
  RATE_LIMIT_PER_MINUTE: '6000000',
  RATE_LIMIT_BURST: '1000000',
  ADMIN_RATE_LIMIT_PER_MINUTE: '6000000',
  ADMIN_RATE_LIMIT_BURST: '1000000',
};

export interface BedOptions {
  /** Uses Redis for queues and rate limits. */
  readonly redis: boolean;
  /** Makes half of the receivers fail, each in its own way. Otherwise all are good. */
  readonly troubles: boolean;
  /** Puts a proxy between the roles and PostgreSQL. */
  readonly silence: boolean;
  /** Gives PostgreSQL its own disk, which `fillDisk` can fill. */
  readonly ownDisk: boolean;
  /** Settings of the roles that override the bed's. */
  readonly env: Readonly<Record<string, string>>;
  /** Starts a portal in addition to the other roles. */
  readonly portal: boolean;
  /** The built checkout that the roles start with. It may be an older version, running on the current schema. */
  readonly root?: string;
}

/** Processes for every role, simulators of both wholesalers, and partners with receivers. */
export class ChaosBed {
  readonly partners: ChaosPartner[] = [];
  readonly endpoints: Endpoint[] = [];
  packages: Readonly<Record<Mode, readonly string[]>> = { sandbox: SANDBOX_PACKAGES, live: [] };
  private readonly started: { stop(): Promise<void> }[] = [];

  private constructor(
    readonly postgres: Postgres,
    readonly proxy: DatabaseProxy | null,
    readonly redis: RedisServer | null,
    readonly simulators: { readonly esimAccess: SimulatorProcess; readonly zendit: SimulatorProcess },
    /** Environment of every role and of `npm run reconcile`. */
    readonly env: Readonly<Record<string, string>>,
    private readonly adminToken: string,
    private readonly options: BedOptions,
  ) {}

  apis: RoleProcess[] = [];
  workers: RoleProcess[] = [];
  private admin!: RoleProcess;
  private portal: RoleProcess | null = null;

  /** @throws Error when a process does not start, after stopping those that did */
  static async open(options: BedOptions): Promise<ChaosBed> {
    const postgres = await Postgres.start({ ownDisk: options.ownDisk });
    const proxy = options.silence ? await DatabaseProxy.start(postgres.url) : null;
    const redis = options.redis ? await RedisServer.start() : null;
    const [accessCode, signingKey, apiKey] = [newSecret(), newSecret(), newSecret()];
    const [esimAccess, zendit] = await Promise.all([
      SimulatorProcess.start(['simulators/esim-access/main.ts', '--rate', '0'], {
        SIM_ACCESS_CODE: accessCode,
        SIM_SIGNING_KEY: signingKey,
      }),
      SimulatorProcess.start(['simulators/zendit/main.ts', '--api-key', apiKey]),
    ]);
    await Promise.all([esimAccess.control({ balance: 1e12 }), zendit.control({ balance: 1e11 })]);
    const adminToken = newSecret();
    const env = {
      ...SETTINGS,
      DATABASE_URL: (proxy ?? postgres).url,
      ADMIN_TOKENS: `chaos:${adminToken}`,
      SECRETS_KEYS: `chaos:${randomBytes(32).toString('base64')}`,
      ESIM_ACCESS_BASE_URL: esimAccess.url,
      ESIM_ACCESS_CODE: accessCode,
      ESIM_ACCESS_SECRET: signingKey,
      ZENDIT_BASE_URL: `${zendit.url}/v1`,
      ZENDIT_API_KEY: apiKey,
      ...(redis ? { REDIS_URL: redis.url } : {}),
      ...options.env,
    };
    const bed = new ChaosBed(postgres, proxy, redis, { esimAccess, zendit }, env, adminToken, options);
    bed.started.push(esimAccess, zendit, ...(redis ? [redis] : []), ...(proxy ? [proxy] : []));
    try {
      await bed.fill();
      return bed;
    } catch (error) {
      await bed.close();
      throw error;
    }
  }

  /** Every role in release order: first the ones that serve calls, then the workers. */
  get processes(): readonly RoleProcess[] {
    const offices = [this.admin as RoleProcess | undefined, this.portal].filter((role) => role != null);
    return [...offices, ...this.apis, ...this.workers];
  }

  /** @returns the API process for the nth call, chosen from those in rotation */
  apiFor(nth: number): RoleProcess {
    const serving = this.apis.filter(({ isInRotation }) => isInRotation);
    return serving[nth % serving.length] ?? this.apis[0]!;
  }

  /**
   * Replaces a process as the chart does (`maxUnavailable: 0`, `maxSurge: 1`, `minReadySeconds`). The successor runs
   * this checkout. It is ready for `MIN_READY_MS` before the old process receives SIGTERM.
   */
  async replace(before: RoleProcess): Promise<RoleEnd> {
    const next = await RoleProcess.start(before.role, before.name, this.env, ROOT);
    if (before.role === 'admin') this.admin = next;
    else if (before.role === 'portal') this.portal = next;
    const several = { api: this.apis, worker: this.workers, admin: null, portal: null }[before.role];
    several?.push(next);
    await sleep(MIN_READY_MS);
    const end = await before.end();
    several?.splice(several.indexOf(before), 1);
    return end;
  }

  /**
   * Calls the admin API and retries until it responds. No fault hits the admin process, but its database may be down.
   * @throws Error when the call is refused
   */
  async callAdmin<Data>(method: 'GET' | 'POST', path: string, body?: object): Promise<Data> {
    const { status, data, text } = await this.tryAdmin<Data>(method, path, body);
    if (status >= 300) throw new Error(`${method} ${path}: ${status} ${text}`);
    return data;
  }

  /** Like `callAdmin`, but returns a refusal instead of throwing. */
  async tryAdmin<Data>(
    method: 'GET' | 'POST',
    path: string,
    body?: object,
  ): Promise<{ readonly status: number; readonly data: Data; readonly text: string }> {
    for (let tries = 0; ; tries++) {
      const answer = await fetch(this.admin.url + path, {
        method,
        headers: { authorization: `Bearer ${this.adminToken}`, 'content-type': 'application/json' },
        ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      }).catch(() => null);
      const text = (await answer?.text().catch(() => null)) ?? null;
      const isBusy = answer === null || text === null || answer.status >= 500 || answer.status === 429;
      if (!isBusy || tries >= 100)
        return { status: answer?.status ?? 0, data: dataOf(text), text: text ?? '' };
      await new Promise((resolve) => setTimeout(resolve, 300));
    }
  }

  /** Idempotent, because the end of the run and an interruption share one promise. */
  close(): Promise<void> {
    return (this.closing ??= this.closeAll());
  }

  private closing: Promise<void> | null = null;

  private async closeAll(): Promise<void> {
    for (const role of this.processes) await role.stop();
    for (const { receiver } of this.endpoints) await receiver.stop();
    for (const each of this.started) await each.stop();
    await this.postgres.remove();
  }

  private async fill(): Promise<void> {
    const { code, output } = await runCommand(['dist/src/migrate.js'], this.env);
    if (code !== 0) throw new Error(`migration failed: ${output}`);
    const start = (role: RoleName, name: string): Promise<RoleProcess> =>
      RoleProcess.start(role, name, this.env, this.options.root ?? ROOT);
    [this.admin, this.workers, this.apis, this.portal] = await Promise.all([
      start('admin', 'admin'),
      Promise.all([start('worker', 'worker 1'), start('worker', 'worker 2')]),
      Promise.all([start('api', 'api 1'), start('api', 'api 2')]),
      this.options.portal ? start('portal', 'portal') : null,
    ]);
    this.packages = { ...this.packages, live: await this.livePackages() };
    for (let nth = 0; nth < PARTNERS; nth++) await this.addPartner(TROUBLES[nth % TROUBLES.length]!);
  }

  private async livePackages(): Promise<readonly string[]> {
    const deadline = performance.now() + CATALOG_LIMIT_MS;
    while (performance.now() < deadline) {
      const rows = await this.postgres.rows<{ package_id: string }>(
        `SELECT s.package_id FROM package_sources s JOIN packages p ON p.mode = 'live' AND p.id = s.package_id
         WHERE s.kind = 'base' AND s.upstream_id = ANY($1) AND p.available ORDER BY 1`,
        [LIVE_UPSTREAM_IDS],
      );
      if (rows.length === LIVE_UPSTREAM_IDS.length) return rows.map((row) => row.package_id);
      await new Promise((resolve) => setTimeout(resolve, 250));
    }
    throw new Error('the Live catalog did not synchronize in time');
  }

  /** Creates a partner with money, a key per mode, and a good and a troubled endpoint per mode. */
  private async addPartner(trouble: Behavior): Promise<void> {
    const { id } = await this.callAdmin<{ id: string }>('POST', '/internal/v1/partners', { name: 'Chaos' });
    const path = `/internal/v1/partners/${id}`;
    const key = async (mode: Mode): Promise<string> =>
      (await this.callAdmin<{ key: string }>('POST', `${path}/api-keys`, { mode })).key;
    this.partners.push({ id, keys: { sandbox: await key('sandbox'), live: await key('live') } });
    await this.callAdmin('POST', `${path}/wallet/deposits`, {
      amount: { amount: DEPOSIT, currency: 'USD' },
      reference: 'chaos',
    });
    for (const mode of ['sandbox', 'live'] as const)
      // One endpoint subscribes to everything, which an older version does not know, the other to the default types.
      for (const [behavior, event_types] of [
        ['good', this.options.root === undefined ? ['*'] : null],
        [this.options.troubles ? trouble : 'good', null],
      ] as const)
        await this.register(path, behavior, { mode, event_types });
  }

  private async register(
    partnerPath: string,
    behavior: Behavior,
    terms: { readonly mode: Mode; readonly event_types: readonly string[] | null },
  ): Promise<void> {
    const receiver = await Receiver.start(behavior);
    const collection = `${partnerPath}/webhook-endpoints`;
    const { id, secret } = await this.callAdmin<{ id: string; secret: string }>('POST', collection, {
      ...terms,
      url: receiver.url,
    });
    receiver.secret = secret;
    this.endpoints.push({ id, path: `${collection}/${id}`, receiver });
  }
}

function newSecret(): string {
  return randomBytes(24).toString('hex');
}

function dataOf<Data>(text: string | null): Data {
  try {
    return (JSON.parse(text ?? '') as { data: Data }).data;
  } catch {
    return undefined as Data;
  }
}
