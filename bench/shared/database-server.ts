import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdirSync, readFileSync, rmSync, statfsSync } from 'node:fs';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { Client } from 'pg';
import { type EmbeddedPostgres, startEmbeddedPostgres } from '../../src/embedded/postgres/index.js';
import { NODE_FLAGS, RESULTS, ROOT } from './report.js';

/** Stored next to the results, because a temporary folder may be a RAM disk and `fsync` is part of the measurement. */
const OWN_DATA = path.join(RESULTS, `data-${process.pid}`);
const STATEMENT_LOG = 'statements';
const DRAIN_LIMIT_MS = 300_000;

/** The embedded PostgreSQL with custom settings. It is durable, and its statement log stays off until needed. */
export class DatabaseServer {
  private constructor(
    private readonly postgres: EmbeddedPostgres,
    private readonly data: string,
    private readonly isKept: boolean,
  ) {}

  /**
   * @param settings server settings that override the service's own
   * @param keptIn a folder that outlives the server and may hold databases of earlier runs; null uses a temporary
   * folder
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

  /** The file that receives statements after `ALTER DATABASE ... SET log_statement = 'all'`. */
  get statementLog(): string {
    return path.join(this.data, 'postgres/log', `${STATEMENT_LOG}.json`);
  }

  /**
   * URL for a superuser.
   * @param database defaults to `postgres`
   */
  url(database?: string): string {
    return this.postgres.url(database);
  }

  /**
   * Creates the database if needed and migrates it. It contains the Sandbox catalog.
   * @returns its URL
   */
  async createDatabase(name: string): Promise<string> {
    const known = await this.query('SELECT 1 FROM pg_database WHERE datname = $1', [name]);
    if (known.length === 0) await this.query(`CREATE DATABASE ${name}`);
    const child = spawn(process.execPath, [...NODE_FLAGS, path.join(ROOT, 'dist/src/migrate.js')], {
      env: { ...process.env, DATABASE_URL: this.url(name) },
      stdio: ['ignore', 'ignore', 'inherit'],
    });
    const [code] = (await once(child, 'exit')) as [number | null];
    if (code !== 0) throw new Error('migrating the bench database failed');
    return this.url(name);
  }

  /**
   * Runs SQL as superuser.
   * @param database defaults to `postgres`
   */
  async query<Row extends object>(sql: string, values: unknown[] = [], database?: string): Promise<Row[]> {
    const client = new Client({ connectionString: this.url(database) });
    await client.connect();
    try {
      return (await client.query<Row>(sql, values)).rows;
    } finally {
      await client.end();
    }
  }

  /**
   * Waits until the worker has no due rows left, so that the next round starts idle.
   * @throws Error after five minutes
   */
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

  /** Vacuums now, so that autovacuum does not run in the middle of a round. */
  async settle(database: string): Promise<void> {
    await this.query('VACUUM ANALYZE', [], database);
    await this.query('CHECKPOINT', [], database);
  }

  /** Pid of the server's main process, the parent of all its other processes. */
  get pid(): number {
    return postmasterOf(path.join(this.data, 'postgres'))!;
  }

  /** Free bytes on the disk that holds the databases. */
  freeBytes(): number {
    const { bavail, bsize } = statfsSync(this.data);
    return bavail * bsize;
  }

  /** Path of a folder for a process under test. `stop` removes it. */
  folder(name: string): string {
    return path.join(this.data, name);
  }

  async stop(): Promise<void> {
    await this.postgres.stop();
    if (!this.isKept) rmSync(this.data, { recursive: true, force: true });
  }
}

/** @returns the pid of the PostgreSQL server that uses a data directory, or null */
export function postmasterOf(dataDir: string): number | null {
  const file = path.join(dataDir, 'postmaster.pid');
  return existsSync(file) ? Number(readFileSync(file, 'utf8').split('\n', 1)[0]) : null;
}
