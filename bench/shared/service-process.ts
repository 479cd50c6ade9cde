import { type ChildProcess, spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { SecretBox } from '../../src/infra/crypto/index.js';
import { freePort } from '../../chaos/free-port.js';
import type { Cleanups } from './child.js';
import { NODE_FLAGS, RESULTS, ROOT } from './report.js';

export type ServiceRole = 'api' | 'admin' | 'worker' | 'all' | 'embedded';

/**
 * Rate limits high enough to refuse nobody (100,000 calls a second), so that calls still pay for the check. Private
 * targets are allowed because receivers run on loopback.
 */
const SETTINGS = {
  RATE_LIMIT_PER_MINUTE: '6000000',
  RATE_LIMIT_BURST: '1000000',
  ADMIN_RATE_LIMIT_PER_MINUTE: '6000000',
  ADMIN_RATE_LIMIT_BURST: '1000000',
  // On a busy machine, writes that wait for a connection are late instead of refused.
  DATABASE_POOL_WAIT_MS: '60000',
  WEBHOOK_ALLOW_PRIVATE_TARGETS: 'true',
};
const SECRET_KEY = randomBytes(32);
/** All processes share one key, so each role can open secrets that another one sealed. */
export const SECRETS_KEYS = `bench:${SECRET_KEY.toString('base64')}`;
/** Production mode, in which the service does not send to loopback. */
export const PRODUCTION = {
  NODE_ENV: 'production',
  WEBHOOK_ALLOW_PRIVATE_TARGETS: 'false',
  PORTAL_URL: 'https://portal.invalid',
};
const START_TIMEOUT_MS = 60_000;

export interface ServiceOptions {
  readonly role: ServiceRole;
  /** Absent for `embedded`, which starts its own database. */
  readonly databaseUrl?: string;
  readonly env?: Readonly<Record<string, string>>;
  /** A built checkout to run; defaults to this one. */
  readonly root?: string;
  /** Name of a CPU profile that the process writes to the results when it stops. */
  readonly profile?: string | undefined;
}

/** A process of the service as in production. Its log goes to /dev/null. */
export class ServiceProcess {
  private constructor(
    private readonly child: ChildProcess,
    readonly apiUrl: string,
    readonly adminUrl: string,
    readonly adminToken: string,
    /** Base URL of `/metrics`. */
    readonly opsUrl: string,
  ) {}

  /**
   * Resolves when the process is ready.
   * @throws Error with the end of the process's stderr when it does not start
   */
  static async start(options: ServiceOptions): Promise<ServiceProcess> {
    const { role, databaseUrl, env, root = ROOT, profile } = options;
    const [api, admin, ops] = [await freePort(), await freePort(), await freePort()];
    const adminToken = randomBytes(24).toString('hex');
    const isWhole = role === 'all' || role === 'embedded';
    const entry = path.join(root, `dist/src/main${isWhole ? '' : `.${role}`}.js`);
    const profiling =
      profile === undefined
        ? []
        : ['--cpu-prof', `--cpu-prof-dir=${RESULTS}`, `--cpu-prof-name=${profile}.cpuprofile`];
    const child = spawn(process.execPath, [...NODE_FLAGS, ...profiling, entry], {
      cwd: root,
      stdio: ['ignore', 'ignore', 'pipe'],
      env: {
        PATH: process.env['PATH'],
        HOST: '127.0.0.1',
        PORT: String(api),
        ADMIN_PORT: String(admin),
        OPS_PORT: String(ops),
        PORTAL_PORT: String(await freePort()),
        INSTALL_PORT: String(await freePort()),
        ADMIN_TOKENS: `bench:${adminToken}`,
        SECRETS_KEYS,
        ...(databaseUrl === undefined ? {} : { DATABASE_URL: databaseUrl }),
        ...SETTINGS,
        ...env,
      },
    });
    const [apiUrl, adminUrl, opsUrl] = [api, admin, isWhole ? admin : ops].map(
      (port) => `http://127.0.0.1:${port}`,
    );
    await untilReady(child, `${opsUrl}/readyz`);
    return new ServiceProcess(child, apiUrl!, adminUrl!, adminToken, opsUrl!);
  }

  get pid(): number {
    return this.child.pid!;
  }

  async stop(): Promise<void> {
    if (this.child.exitCode !== null || this.child.signalCode !== null) return;
    this.child.kill('SIGTERM');
    await once(this.child, 'exit');
  }
}

/** Starts one process per role on one database. */
export async function startRoles<Role extends ServiceRole>(
  roles: readonly Role[],
  options: Omit<ServiceOptions, 'role'>,
  cleanups: Cleanups,
): Promise<Readonly<Record<Role, ServiceProcess>>> {
  const started: Partial<Record<Role, ServiceProcess>> = {};
  for (const role of roles)
    started[role] = cleanups.stopping(await ServiceProcess.start({ ...options, role }));
  return started as Record<Role, ServiceProcess>;
}

/** Seals secrets that the bench inserts, with the key of the bench's processes. */
export function secretBox(): SecretBox {
  return new SecretBox({ secretKeys: [{ id: 'bench', key: SECRET_KEY }] });
}

/** Live orders need a configured provider. Nothing listens at this address, because only a worker would call it. */
export function deafProvider(): Readonly<Record<string, string>> {
  return {
    ESIM_ACCESS_BASE_URL: 'https://127.0.0.1:9',
    ESIM_ACCESS_CODE: randomBytes(16).toString('hex'),
    ESIM_ACCESS_SECRET: randomBytes(16).toString('hex'),
  };
}

async function untilReady(child: ChildProcess, url: string): Promise<void> {
  let lastWords = '';
  child.stderr?.on('data', (chunk: Buffer) => (lastWords = (lastWords + chunk.toString()).slice(-2_000)));
  const deadlineMs = performance.now() + START_TIMEOUT_MS;
  while (performance.now() < deadlineMs && child.exitCode === null) {
    const answer = await fetch(url).catch(() => null);
    if (answer?.ok) return;
    await sleep(50);
  }
  child.kill('SIGKILL');
  throw new Error(`the service did not start: ${lastWords}`);
}
