import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { migrateDatabase } from '../../src/apps/migration.js';
import { type EmbeddedPostgres, startEmbeddedPostgres } from '../../src/embedded/postgres/index.js';
import { openPool, type TestDatabase } from '../harness/index.js';
import { freePort } from '../harness/free-port.js';

/** Fast, and safe against a stop: only a crash of the machine could lose rows. */
const SETTINGS = { fsync: 'off', full_page_writes: 'off', max_connections: 200 };

/** A PostgreSQL server for one test alone, that may be stopped and started while others use theirs. */
export class OwnPostgres {
  private constructor(
    private readonly folder: string,
    private readonly port: number,
    private server: EmbeddedPostgres,
    readonly database: TestDatabase,
  ) {}

  static async start(): Promise<OwnPostgres> {
    const folder = mkdtempSync(path.join(tmpdir(), 'esim-storm-'));
    const port = await freePort();
    const server = await launch(folder, port);
    const url = server.url();
    await migrateDatabase(url);
    const pool = openPool(url, 4);
    return new OwnPostgres(folder, port, server, { url, pool, drop: () => pool.end() });
  }

  /** Ends every session, and starts on the same port and data after `downMs` milliseconds. */
  async restart(downMs: number): Promise<void> {
    await this.server.stop();
    await new Promise((resolve) => setTimeout(resolve, downMs));
    this.server = await launch(this.folder, this.port);
  }

  async remove(): Promise<void> {
    await this.database.drop();
    await this.server.stop();
    rmSync(this.folder, { recursive: true, force: true, maxRetries: 10 });
  }
}

function launch(folder: string, port: number): Promise<EmbeddedPostgres> {
  return startEmbeddedPostgres({ dataDir: path.join(folder, 'postgres'), port, settings: SETTINGS });
}
