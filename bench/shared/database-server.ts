import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdirSync, readFileSync, rmSync, statfsSync } from 'node:fs';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { Client } from 'pg';
import { type EmbeddedPostgres, startEmbeddedPostgres } from '../../src/embedded/postgres/index.js';
import { NODE_FLAGS, RESULTS, ROOT } from './report.js';

/** Beside the results: a temporary folder may be a RAM disk, and `fsync` is part of the measurement. */
const OWN_DATA = path.join(RESULTS, `data-${process.pid}`);
const STATEMENT_LOG = 'statements';
const DRAIN_LIMIT_MS = 300_000;

/** The embedded PostgreSQL with its own settings, durable, with a statement log that is off until it is needed. */
export class DatabaseServer {
  private constructor(
    private readonly postgres: EmbeddedPostgres,
    private readonly data: string,
    private readonly isKept: boolean,
  ) {}

  /**
   * @param settings of the server, on top of the service's own
   * @param keptIn a folder that outlives the server, with the databases of an earlier run; null: a folder of this run
   */
  static async start(
    settings: Readonly<Record<string, string | number>> = {},
    keptIn: string | null = null,
  ): Promise<DatabaseServer> {
    const data = keptIn === null ? OWN_DATA : path.resolve(keptIn);
    mkdirSync(data, { recursive: true });
    const postgres = await startEmbeddedPostgres({
      dataDir: path.join(data, 'postgres'),
      settings: {
        logging_collector: 'on',
        log_destination: 'jsonlog',
        log_directory: 'log',
        log_filename: STATEMENT_LOG,
        log_rotation_age: 0,
        log_rotation_size: 0,
        ...settings,
      },
    });
    return new DatabaseServer(postgres, data, keptIn !== null);
  }

  /** The file that `ALTER DATABASE ... SET log_statement = 'all'` writes to. */
  get statementLog(): string {
    return path.join(this.data, 'postgres/log', `${STATEMENT_LOG}.json`);
  }

  /** As superuser. @param database `postgres` when omitted */
  url(database?: string): string {
    return this.postgres.url(database);
  }

  /** A migrated database with the Sandbox catalog, unless an earlier run made it. @returns its URL */
  async createDatabase(name: string): Promise<string> {
    const known = await this.query('SELECT 1 FROM pg_database WHERE datname = $1', [name]);
    if (known.length === 0) await this.query(`CREATE DATABASE ${name}`);
    const child = spawn(process.execPath, [...NODE_FLAGS, path.join(ROOT, 'dist/src/migrate.js')], {
      env: { ...process.env, DATABASE_URL: this.url(name) },
      stdio: ['ignore', 'ignore', 'inherit'],
    });
    const [code] = (await once(child, 'exit')) as [number | null];
    if (code !== 0) throw new Error('migrating the database of the bench failed');
    return this.url(name);
  }

  /** Runs SQL as superuser. @param database `postgres` when omitted */
  async query<Row extends object>(sql: string, values: unknown[] = [], database?: string): Promise<Row[]> {
    const client = new Client({ connectionString: this.url(database) });
    await client.connect();
    try {
      return (await client.query<Row>(sql, values)).rows;
    } finally {
      await client.end();
    }
  }

  /** Waits until a worker has no due row left, so that the next round begins idle. @throws Error after five minutes */
  async drain(database: string, work: 'orders' | 'deliveries'): Promise<void> {
    const owed =
      work === 'orders'
        ? 'SELECT 1 FROM orders WHERE next_attempt_at IS NOT NULL LIMIT 1'
        : `SELECT 1 FROM webhook_deliveries WHERE status = 'pending' LIMIT 1`;
    const deadlineMs = performance.now() + DRAIN_LIMIT_MS;
    while ((await this.query(owed, [], database)).length > 0) {
      if (performance.now() > deadlineMs) throw new Error(`${work} are still open after five minutes`);
      await sleep(100);
    }
  }

  /** Vacuums as autovacuum would have done by now, so that it does not run in the middle of a round. */
  async settle(database: string): Promise<void> {
    await this.query('VACUUM ANALYZE', [], database);
    await this.query('CHECKPOINT', [], database);
  }

  /** The server's main process. All others are its children. */
  get pid(): number {
    return postmasterOf(path.join(this.data, 'postgres'))!;
  }

  /** Free bytes of the disk that the databases grow on. */
  freeBytes(): number {
    const { bavail, bsize } = statfsSync(this.data);
    return bavail * bsize;
  }

  /** A folder for a process under test. It is removed with the server. */
  folder(name: string): string {
    return path.join(this.data, name);
  }

  async stop(): Promise<void> {
    await this.postgres.stop();
    if (!this.isKept) rmSync(this.data, { recursive: true, force: true });
  }
}

/** The pid of the PostgreSQL that serves a data directory, or null. */
export function postmasterOf(dataDir: string): number | null {
  const file = path.join(dataDir, 'postmaster.pid');
  return existsSync(file) ? Number(readFileSync(file, 'utf8').split('\n', 1)[0]) : null;
}
