import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdirSync, readFileSync, rmSync } from 'node:fs';
import path from 'node:path';
import { Client } from 'pg';
import { type EmbeddedPostgres, startEmbeddedPostgres } from '../../src/embedded/postgres/index.js';
import { NODE_FLAGS, RESULTS, ROOT } from '../places.js';

/** Beside the results and not in a temporary folder, which may be a RAM disk: `fsync` is part of the measurement. */
const DATA = path.join(RESULTS, `data-${process.pid}`);
const STATEMENT_LOG = 'statements';

/** The embedded PostgreSQL with its own settings, durable, plus a statement log that is silent until asked for. */
export class DatabaseServer {
  private constructor(private readonly postgres: EmbeddedPostgres) {}

  /** @param settings of the server, on top of the service's own */
  static async start(settings: Readonly<Record<string, string | number>> = {}): Promise<DatabaseServer> {
    mkdirSync(DATA, { recursive: true });
    const postgres = await startEmbeddedPostgres({
      dataDir: path.join(DATA, 'postgres'),
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
    return new DatabaseServer(postgres);
  }

  /** The log that `ALTER DATABASE ... SET log_statement = 'all'` writes to. */
  get statementLog(): string {
    return path.join(DATA, 'postgres/log', `${STATEMENT_LOG}.json`);
  }

  /** As superuser. @param database `postgres` when omitted */
  url(database?: string): string {
    return this.postgres.url(database);
  }

  /** A migrated database with the Sandbox catalogue; answers its URL. */
  async createDatabase(name: string): Promise<string> {
    await this.query(`CREATE DATABASE ${name}`);
    await migrate(this.postgres.url(name));
    return this.postgres.url(name);
  }

  /** Runs SQL as superuser. @param database `postgres` when omitted */
  async query<Row extends object>(sql: string, values: unknown[] = [], database?: string): Promise<Row[]> {
    const client = new Client({ connectionString: this.postgres.url(database) });
    await client.connect();
    try {
      return (await client.query<Row>(sql, values)).rows;
    } finally {
      await client.end();
    }
  }

  /** The server's main process; all others are its children. */
  get pid(): number {
    return postmasterOf(path.join(DATA, 'postgres'))!;
  }

  /** A folder for a process under test, gone with the server. */
  folder(name: string): string {
    return path.join(DATA, name);
  }

  async stop(): Promise<void> {
    await this.postgres.stop();
    rmSync(DATA, { recursive: true, force: true });
  }
}

/** The pid of the PostgreSQL that serves a data directory, or null. */
export function postmasterOf(dataDir: string): number | null {
  const file = path.join(dataDir, 'postmaster.pid');
  return existsSync(file) ? Number(readFileSync(file, 'utf8').split('\n', 1)[0]) : null;
}

async function migrate(databaseUrl: string): Promise<void> {
  const child = spawn(process.execPath, [...NODE_FLAGS, path.join(ROOT, 'dist/src/migrate.js')], {
    env: { ...process.env, DATABASE_URL: databaseUrl },
    stdio: ['ignore', 'ignore', 'inherit'],
  });
  const [code] = (await once(child, 'exit')) as [number | null];
  if (code !== 0) throw new Error('migrating the database of the bench failed');
}
