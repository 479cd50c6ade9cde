import { randomBytes } from 'node:crypto';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import type { RedisOptions } from 'ioredis';
import { eventually } from './eventually.js';
import { freePort } from '../../chaos/free-port.js';
import { answers, askRedis, MEMORY_ONLY, ON_LOOPBACK, RedisProcess } from './redis.js';
import { listenArguments, type TestCertificates } from './redis-tls.js';

const PRIMARY = 'mymaster';
const SENTINELS = 3;
const QUORUM = 2;
const DOWN_AFTER_MS = 1_000;
const FAILOVER_TIMEOUT_MS = 3_000;

export interface SentinelOptions {
  readonly replicas: number;
  readonly certificates?: TestCertificates;
}

/** A primary, its replicas and three sentinels, all with passwords that must be URL-encoded. */
export class SentinelSetup {
  /** The passwords of the servers and of the sentinels. */
  readonly passwords = [1, 2].map(() => `p@s/s:+%${randomBytes(9).toString('hex')}`) as [string, string];
  private readonly folder = mkdtempSync(path.join(tmpdir(), 'esim-sentinel-'));
  private readonly servers = new Map<number, RedisProcess>();
  private readonly sentinels = new Map<number, RedisProcess>();

  private constructor(private readonly certificates: TestCertificates | null) {}

  static async start({ replicas, certificates }: SentinelOptions): Promise<SentinelSetup> {
    const setup = new SentinelSetup(certificates ?? null);
    try {
      await setup.begin(replicas);
      return setup;
    } catch (error) {
      await setup.stop();
      throw error;
    }
  }

  /** A value for `REDIS_URL`. `hosts` come before the working sentinels. */
  url({ password = this.passwords[0], hosts = [] as readonly string[] } = {}): string {
    const nodes = [...this.sentinels.keys()].map((port) => `127.0.0.1:${port}`);
    const scheme = this.certificates ? 'rediss' : 'redis';
    const login = `:${encodeURIComponent(password)}`;
    const option = `sentinel_password=${encodeURIComponent(this.passwords[1])}`;
    return `${scheme}+sentinel://${login}@${[...hosts, ...nodes].join(',')}/${PRIMARY}?${option}`;
  }

  /** The port of the primary according to a sentinel. */
  async primaryPort(): Promise<number> {
    const [sentinel] = this.sentinels.keys();
    const answer = await askRedis(this.sentinelOptions(sentinel!), (client) =>
      client.call('SENTINEL', 'get-master-addr-by-name', PRIMARY),
    );
    return Number((answer as [string, string])[1]);
  }

  server(port: number): RedisProcess {
    return this.servers.get(port)!;
  }

  /** Options of a client for one server. */
  optionsOf(port: number): RedisOptions {
    return { port, password: this.passwords[0], ...this.tls() };
  }

  async stop(): Promise<void> {
    await Promise.all([...this.sentinels.values(), ...this.servers.values()].map((each) => each.kill()));
    rmSync(this.folder, { recursive: true, force: true });
  }

  private async begin(replicas: number): Promise<void> {
    const [primary, ...others] = await freePorts(1 + replicas);
    this.startServer(primary!, []);
    for (const port of others) this.startServer(port, ['--replicaof', '127.0.0.1', String(primary)]);
    await eventually('the replicas follow', async () => {
      if (!(await answers(this.optionsOf(primary!)))) return false;
      const states = await Promise.all(others.map((port) => this.info(port).catch(() => '')));
      return states.every((state) => state.includes('master_link_status:up'));
    });
    // Sentinels query the primary for its replicas at startup and then every ten seconds.
    const ports = await freePorts(SENTINELS);
    for (const port of ports) this.startSentinel(port, primary!);
    await eventually('the sentinels know all', async () => {
      const known = await Promise.all(ports.map((port) => this.knownTo(port).catch(() => null)));
      return known.every((each) => each?.sentinels === SENTINELS - 1 && each.replicas === replicas);
    });
  }

  private startServer(port: number, more: readonly string[]): void {
    const [password] = this.passwords;
    const args = [
      ...listenArguments(port, this.certificates),
      ...[...ON_LOOPBACK, ...MEMORY_ONLY, '--dir', this.folder],
      ...['--requirepass', password, '--masterauth', password, '--repl-diskless-sync-delay', '0'],
    ];
    this.servers.set(port, RedisProcess.launch([...args, ...more]));
  }

  private startSentinel(port: number, primary: number): void {
    const [password, ofSentinels] = this.passwords;
    const file = path.join(this.folder, `sentinel-${port}.conf`);
    const lines = [
      `sentinel monitor ${PRIMARY} 127.0.0.1 ${primary} ${QUORUM}`,
      `sentinel auth-pass ${PRIMARY} "${password}"`,
      `sentinel down-after-milliseconds ${PRIMARY} ${DOWN_AFTER_MS}`,
      `sentinel failover-timeout ${PRIMARY} ${FAILOVER_TIMEOUT_MS}`,
      `sentinel sentinel-pass "${ofSentinels}"`,
      `requirepass "${ofSentinels}"`,
    ];
    writeFileSync(file, `${lines.join('\n')}\n`);
    const args = [...listenArguments(port, this.certificates), ...ON_LOOPBACK, '--dir', this.folder];
    this.sentinels.set(port, RedisProcess.launch([file, '--sentinel', ...args]));
  }

  private async knownTo(port: number): Promise<{ sentinels: number; replicas: number }> {
    return askRedis(this.sentinelOptions(port), async (client) => ({
      sentinels: ((await client.call('SENTINEL', 'sentinels', PRIMARY)) as unknown[]).length,
      replicas: ((await client.call('SENTINEL', 'replicas', PRIMARY)) as unknown[]).length,
    }));
  }

  private info(port: number): Promise<string> {
    return askRedis(this.optionsOf(port), (client) => client.info('replication'));
  }

  private sentinelOptions(port: number): RedisOptions {
    return { port, password: this.passwords[1], enableReadyCheck: false, ...this.tls() };
  }

  private tls(): RedisOptions {
    return this.certificates ? { tls: { ca: this.certificates.ca, servername: 'localhost' } } : {};
  }
}

async function freePorts(count: number): Promise<readonly number[]> {
  const ports: number[] = [];
  while (ports.length < count) ports.push(await freePort());
  return ports;
}
