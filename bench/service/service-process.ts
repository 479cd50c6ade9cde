import { type ChildProcess, spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { createServer, type AddressInfo } from 'node:net';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { NODE_FLAGS, RESULTS, ROOT } from '../places.js';

export type ServiceRole = 'api' | 'admin' | 'worker' | 'all' | 'embedded';

const ENTRIES: Readonly<Record<ServiceRole, string>> = {
  api: 'dist/src/main.api.js',
  admin: 'dist/src/main.admin.js',
  worker: 'dist/src/main.worker.js',
  all: 'dist/src/main.js',
  embedded: 'dist/src/main.js',
};

/** Never refuses, and is charged all the same: 100,000 calls a second. */
const UNLIMITED = {
  RATE_LIMIT_PER_MINUTE: '6000000',
  RATE_LIMIT_BURST: '1000000',
  ADMIN_RATE_LIMIT_PER_MINUTE: '6000000',
  ADMIN_RATE_LIMIT_BURST: '1000000',
};
const START_TIMEOUT_MS = 60_000;

export interface ServiceOptions {
  readonly role: ServiceRole;
  /** Absent for `embedded`, which brings its own. */
  readonly databaseUrl?: string;
  readonly env?: Readonly<Record<string, string>>;
  /** Of another checkout's build, such as `…/dist/src/main.js`. */
  readonly entry?: string;
  /** Name of a CPU profile to write to the results when the process stops. */
  readonly profile?: string | undefined;
}

/** A process of the service as it runs in production: its log on, its lines to /dev/null. */
export class ServiceProcess {
  private constructor(
    private readonly child: ChildProcess,
    readonly apiUrl: string,
    readonly adminUrl: string,
    readonly adminToken: string,
    /** Of `/metrics`. */
    readonly opsUrl: string,
  ) {}

  /** Answers when the process is ready. @throws Error with its last words when it is not */
  static async start(options: ServiceOptions): Promise<ServiceProcess> {
    const [api, admin, ops] = await freePorts();
    const adminToken = randomBytes(24).toString('hex');
    const entry = options.entry ?? path.join(ROOT, ENTRIES[options.role]);
    const child = spawn(process.execPath, [...NODE_FLAGS, ...profileFlags(options.profile), entry], {
      cwd: path.resolve(path.dirname(entry), '../..'),
      stdio: ['ignore', 'ignore', 'pipe'],
      env: {
        PATH: process.env['PATH'],
        HOST: '127.0.0.1',
        PORT: String(api),
        ADMIN_PORT: String(admin),
        OPS_PORT: String(ops),
        ADMIN_TOKENS: `bench:${adminToken}`,
        SECRETS_KEYS: `bench:${randomBytes(32).toString('base64')}`,
        ...(options.databaseUrl === undefined ? {} : { DATABASE_URL: options.databaseUrl }),
        ...UNLIMITED,
        ...options.env,
      },
    });
    const together = options.role === 'all' || options.role === 'embedded';
    const opsUrl = `http://127.0.0.1:${together ? admin : ops}`;
    await untilReady(child, `${opsUrl}/readyz`);
    return new ServiceProcess(
      child,
      `http://127.0.0.1:${api}`,
      `http://127.0.0.1:${admin}`,
      adminToken,
      opsUrl,
    );
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

function profileFlags(name: string | undefined): string[] {
  if (name === undefined) return [];
  return ['--cpu-prof', `--cpu-prof-dir=${RESULTS}`, `--cpu-prof-name=${name}.cpuprofile`];
}

async function untilReady(child: ChildProcess, url: string): Promise<void> {
  let lastWords = '';
  child.stderr?.on('data', (chunk: Buffer) => (lastWords = (lastWords + chunk.toString()).slice(-2_000)));
  const deadline = performance.now() + START_TIMEOUT_MS;
  while (performance.now() < deadline && child.exitCode === null) {
    const answer = await fetch(url).catch(() => null);
    if (answer?.ok) return;
    await sleep(50);
  }
  child.kill('SIGKILL');
  throw new Error(`the service did not start: ${lastWords}`);
}

async function freePorts(): Promise<[number, number, number]> {
  const servers = await Promise.all(
    [0, 1, 2].map(async () => {
      const server = createServer().listen(0, '127.0.0.1');
      await once(server, 'listening');
      return server;
    }),
  );
  const ports = servers.map((server) => (server.address() as AddressInfo).port);
  for (const server of servers) server.close();
  return ports as [number, number, number];
}
