import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { Client, type Pool } from 'pg';
import { migrateDatabase } from '../../src/apps/migration.js';
import { type EmbeddedPostgres, startEmbeddedPostgres } from '../../src/embedded/postgres/index.js';
import { freePort } from '../harness/free-port.js';
import { openPool, type TestDatabase } from '../harness/index.js';

const SETTINGS = { fsync: 'off', full_page_writes: 'off', autovacuum: 'off', max_connections: 200 };

/** A database on a server of its own, whose data directory can be put back as it was. */
export class RestorableDatabase implements TestDatabase {
  private constructor(
    private readonly folder: string,
    private postgres: EmbeddedPostgres,
    readonly pool: Pool,
  ) {}

  static async create(): Promise<RestorableDatabase> {
    const folder = mkdtempSync(path.join(tmpdir(), 'esim-restore-'));
    // Nobody gets it by chance while the server is down.
    const port = await freePort();
    const dataDir = path.join(folder, 'data');
    const postgres = await startEmbeddedPostgres({ dataDir, port, settings: SETTINGS });
    const client = new Client({ connectionString: postgres.url() });
    await client.connect();
    await client.query('CREATE DATABASE esim');
    await client.end();
    const url = postgres.url('esim');
    await migrateDatabase(url);
    return new RestorableDatabase(folder, postgres, openPool(url, 4));
  }

  get url(): string {
    return this.postgres.url('esim');
  }

  /** Stops the server, copies its data directory, and starts it again; answers the time that the copy is of. */
  async backUp(): Promise<Date> {
    await this.postgres.stop();
    const at = new Date();
    this.copy('data', 'backup');
    await this.start();
    return at;
  }

  /** Everything since the copy is lost. The caller has ended every role. */
  async restore(): Promise<void> {
    await this.postgres.stop();
    rmSync(path.join(this.folder, 'data'), { recursive: true });
    this.copy('backup', 'data');
    await this.start();
  }

  async drop(): Promise<void> {
    await this.pool.end();
    await this.postgres.stop();
    rmSync(this.folder, { recursive: true, force: true });
  }

  /** With its owner, which is not root where this runs as root. */
  private copy(from: string, to: string): void {
    execFileSync('cp', ['-a', path.join(this.folder, from), path.join(this.folder, to)]);
  }

  /** On the same port, which the folder remembers. */
  private async start(): Promise<void> {
    const dataDir = path.join(this.folder, 'data');
    this.postgres = await startEmbeddedPostgres({ dataDir, port: this.postgres.port, settings: SETTINGS });
  }
}
