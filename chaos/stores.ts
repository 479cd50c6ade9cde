import { type ChildProcess, execFileSync, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync, statfsSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { Redis } from 'ioredis';
import { Pool } from 'pg';
import { type EmbeddedPostgres, startEmbeddedPostgres } from '../src/embedded/postgres/index.js';
import { freePort } from './free-port.js';
import { endWithUs, exclusively } from './processes.js';

/** Durable, as in production: commits must survive a crash of the server. */
const SETTINGS = { max_connections: 250, synchronous_commit: 'on' };

const DISK_FULL = '53100';
/** After its disk was full, the server gets this long to recover before it is restarted. */
const RECOVERY_MS = 5_000;

/** A PostgreSQL server that can be restarted and crashed, and whose disk can be filled. It keeps its port and data. */
export class Postgres {
  readonly pool: Pool;
  /** How often a statement failed because the disk was full. */
  fullSeen = 0;

  /** Runs faults of the stores one at a time. */
  readonly inTurn = exclusively();

  private constructor(
    private readonly folder: string,
    private readonly port: number,
    private server: EmbeddedPostgres,
    private readonly disk: ShrinkableDisk | null,
  ) {
    this.pool = new Pool({ connectionString: this.url, max: 4, connectionTimeoutMillis: 5_000 });
    this.pool.on('error', () => undefined);
  }

  /** @param ownDisk keeps the data on a disk that can be filled, if this process may mount one */
  static async start({ ownDisk }: { readonly ownDisk: boolean }): Promise<Postgres> {
    const folder = mkdtempSync(path.join(tmpdir(), 'esim-chaos-'));
    const disk = ownDisk ? ShrinkableDisk.mountAt(folder) : null;
    const port = await freePort();
    return new Postgres(folder, port, await launch(folder, port), disk);
  }

  /** Whether `fillDisk` has an effect. */
  get canFillDisk(): boolean {
    return this.disk !== null;
  }

  get url(): string {
    return this.server.url();
  }

  /** Ends every session. All commits survive. */
  async restart(downMs: number): Promise<void> {
    await this.server.stop();
    await sleep(downMs);
    this.server = await launch(this.folder, this.port);
  }

  /** Simulates a crash: no checkpoint, so the next start replays the WAL. */
  async crash(downMs: number): Promise<void> {
    const pid = Number(
      readFileSync(path.join(this.folder, 'postgres', 'postmaster.pid'), 'utf8').split('\n', 1)[0],
    );
    process.kill(pid, 'SIGQUIT');
    await sleep(downMs);
    await this.server.stop().catch(() => undefined);
    this.server = await launch(this.folder, this.port);
  }

  /**
   * Keeps every file from growing for a while. Statements fail, and so does the server itself if it needs another WAL
   * segment. Does nothing without a disk to fill.
   */
  async fillDisk(ms: number): Promise<void> {
    if (this.disk === null) return;
    this.disk.fill();
    try {
      await sleep(ms / 2);
      if (await this.refusesToGrow()) this.fullSeen++;
      await sleep(ms / 2);
    } finally {
      this.disk.free();
    }
    if (await this.recovers()) return;
    await this.server.stop().catch(() => undefined);
    this.server = await launch(this.folder, this.port);
  }

  /** @returns whether a statement that needs some megabytes fails because the disk is full */
  private async refusesToGrow(): Promise<boolean> {
    const large = `SELECT i, md5(i::text) FROM generate_series(1, 50000) AS i`;
    return this.pool.query(`CREATE TABLE chaos_full_disk AS ${large}; DROP TABLE chaos_full_disk`).then(
      () => false,
      (error: unknown) => (error as { code?: string }).code === DISK_FULL,
    );
  }

  private async recovers(): Promise<boolean> {
    const deadline = performance.now() + RECOVERY_MS;
    while (performance.now() < deadline) {
      if (await this.pool.query('SELECT 1').catch(() => null)) return true;
      await sleep(200);
    }
    return false;
  }

  /**
   * Runs a query and retries it while the server is down.
   * @throws Error after a minute
   */
  async rows<Row extends object>(text: string, values: readonly unknown[] = []): Promise<readonly Row[]> {
    const deadline = performance.now() + 60_000;
    for (;;) {
      try {
        return (await this.pool.query<Row>(text, [...values])).rows;
      } catch (error) {
        if (performance.now() > deadline || (error as { code?: string }).code?.startsWith('42')) throw error;
        await sleep(200);
      }
    }
  }

  async remove(): Promise<void> {
    await this.pool.end();
    await this.server.stop();
    this.disk?.unmount();
    rmSync(this.folder, { recursive: true, force: true, maxRetries: 10 });
  }
}

function launch(folder: string, port: number): Promise<EmbeddedPostgres> {
  return startEmbeddedPostgres({ dataDir: path.join(folder, 'postgres'), port, settings: SETTINGS });
}

/** A Redis without persistence, so every kill loses all its data. */
export class RedisServer {
  private child: ChildProcess | null = null;

  private constructor(private readonly port: number) {}

  /** @throws Error when redis-server is not installed */
  static async start(): Promise<RedisServer> {
    if (spawnSync('redis-server', ['--version']).status !== 0)
      throw new Error('redis-server is not installed (apt-get install redis-server)');
    const redis = new RedisServer(await freePort());
    await redis.launch();
    return redis;
  }

  get pid(): number {
    return this.child!.pid!;
  }

  get url(): string {
    return `redis://127.0.0.1:${this.port}`;
  }

  async killFor(downMs: number): Promise<void> {
    await this.stop();
    await sleep(downMs);
    await this.launch();
  }

  async flush(): Promise<void> {
    await this.ask((client) => client.flushall());
  }

  async stop(): Promise<void> {
    if (!this.child || this.child.exitCode !== null || this.child.signalCode !== null) return;
    const ended = once(this.child, 'exit');
    this.child.kill('SIGKILL');
    await ended;
  }

  private async launch(): Promise<void> {
    const address = ['--port', String(this.port), '--bind', '127.0.0.1'];
    const memoryOnly = ['--save', '', '--appendonly', 'no'];
    this.child = endWithUs(spawn('redis-server', [...address, ...memoryOnly], { stdio: 'ignore' }));
    for (let tries = 0; tries < 200; tries++) {
      if (await this.ask((client) => client.ping()).catch(() => null)) return;
      await sleep(50);
    }
    throw new Error('redis-server does not respond');
  }

  private async ask<T>(question: (client: Redis) => Promise<T>): Promise<T> {
    const client = new Redis(this.url, { lazyConnect: true, retryStrategy: () => null });
    client.on('error', () => undefined);
    try {
      await client.connect();
      return await question(client);
    } finally {
      client.disconnect();
    }
  }
}

/** A tmpfs cannot shrink below its content, which keeps growing. Each try leaves this much more room. */
const SPARE_BYTES = 16 * 1024;
const TRIES = 50;

/** A file system that can be filled and freed instantly. It is a tmpfs, which only root may mount. */
class ShrinkableDisk {
  private constructor(private readonly folder: string) {}

  /** @returns null if this process may not mount */
  static mountAt(folder: string): ShrinkableDisk | null {
    const options = ['-t', 'tmpfs', '-o', 'size=50%,mode=0755', 'tmpfs', folder];
    if (spawnSync('mount', options, { stdio: 'ignore' }).status !== 0) return null;
    const disk = new ShrinkableDisk(folder);
    process.once('exit', () => disk.unmount());
    return disk;
  }

  /**
   * Leaves no room for a file to grow by more than a few pages.
   * @throws Error when the content grows faster than the file system can shrink
   */
  fill(): void {
    for (let tries = 0; tries < TRIES; tries++) {
      const { blocks, bfree, bsize } = statfsSync(this.folder);
      const options = `remount,size=${(blocks - bfree) * bsize + tries * SPARE_BYTES}`;
      if (spawnSync('mount', ['-o', options, this.folder], { stdio: 'ignore' }).status === 0) return;
    }
    throw new Error(`could not shrink ${this.folder}`);
  }

  free(): void {
    execFileSync('mount', ['-o', 'remount,size=50%', this.folder]);
  }

  unmount(): void {
    spawnSync('umount', ['-l', this.folder], { stdio: 'ignore' });
  }
}
