import { execFileSync } from 'node:child_process';
import { appendFileSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { Client, type Pool } from 'pg';
import { migrateDatabase } from '../../../src/apps/migration.js';
import { openCluster } from '../../../src/embedded/postgres/cluster.js';
import { type EmbeddedPostgres, startEmbeddedPostgres } from '../../../src/embedded/postgres/index.js';
import {
  type PostgresProcess,
  runPostgres,
  shutDown,
} from '../../../src/embedded/postgres/postgres-process.js';
import { eventually, openPool, type TestDatabase } from '../../harness/index.js';
import { freePort } from '../../../chaos/free-port.js';

const SETTINGS = {
  fsync: 'off',
  autovacuum: 'off',
  max_connections: 100,
  wal_level: 'replica',
  max_wal_senders: 4,
};

/** A primary and a standby that streams from it, on separate servers. */
export class StandbyPair implements TestDatabase {
  private standby: PostgresProcess | null = null;

  private constructor(
    private readonly folder: string,
    private readonly primary: EmbeddedPostgres,
    readonly pool: Pool,
    private readonly standbyPort: number,
  ) {}

  static async create(): Promise<StandbyPair> {
    const folder = mkdtempSync(path.join(tmpdir(), 'esim-standby-'));
    const dataDir = path.join(folder, 'data');
    const first = await startEmbeddedPostgres({ dataDir, settings: SETTINGS });
    const client = new Client({ connectionString: first.url() });
    await client.connect();
    await client.query('CREATE DATABASE esim');
    await client.end();
    await migrateDatabase(first.url('esim'));
    await first.stop();
    execFileSync('cp', ['-a', dataDir, path.join(folder, 'copy')]);
    execFileSync('cp', ['-a', `${dataDir}.password`, path.join(folder, 'copy.password')]);
    const primary = await startEmbeddedPostgres({ dataDir, port: first.port, settings: SETTINGS });
    const pool = openPool(primary.url('esim'), 2);
    const pair = new StandbyPair(folder, primary, pool, await freePort());
    pair.followPrimary();
    await pair.startStandby();
    return pair;
  }

  get url(): string {
    return this.primary.url('esim');
  }

  get standbyUrl(): string {
    const url = new URL(this.url);
    url.searchParams.delete('host');
    url.port = String(this.standbyPort);
    return url.href;
  }

  async startStandby(): Promise<void> {
    const { postgres, prefix, dataDir } = await openCluster(path.join(this.folder, 'copy'), false);
    const settings = {
      ...SETTINGS,
      listen_addresses: '127.0.0.1',
      unix_socket_directories: '',
      hot_standby: 'on',
    };
    const flags = Object.entries(settings).flatMap(([name, value]) => ['-c', `${name}=${value}`]);
    this.standby = runPostgres(postgres, ['-D', dataDir, '-p', String(this.standbyPort), ...flags], {
      prefix,
      detached: true,
    });
    await eventually('the standby answers', () =>
      this.onStandby('SELECT 1').then(
        () => true,
        () => false,
      ),
    );
  }

  async stopStandby(): Promise<void> {
    const { standby } = this;
    this.standby = null;
    if (standby?.pid !== undefined) await shutDown(standby.pid, standby.ended);
  }

  async onStandby(statement: string): Promise<void> {
    const client = new Client({ connectionString: this.standbyUrl });
    client.on('error', () => undefined);
    await client.connect();
    try {
      await client.query(statement);
    } finally {
      await client.end();
    }
  }

  async drop(): Promise<void> {
    await this.pool.end();
    await this.stopStandby();
    await this.primary.stop();
    rmSync(this.folder, { recursive: true, force: true });
  }

  private followPrimary(): void {
    const { hostname, port, username, password } = new URL(this.primary.url());
    const conninfo = `host=${hostname} port=${port} user=${username} password=${decodeURIComponent(password)}`;
    appendFileSync(
      path.join(this.folder, 'copy', 'postgresql.auto.conf'),
      `\nprimary_conninfo = '${conninfo}'\n`,
    );
    writeFileSync(path.join(this.folder, 'copy', 'standby.signal'), '');
  }
}
