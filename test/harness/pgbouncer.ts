import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { chmodSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { Client } from 'pg';
import { overTcp } from './database.js';
import { eventually } from './eventually.js';
import { freePort } from '../../chaos/free-port.js';
import { SERVICE_ROLE } from './unusual-database.js';
import { whyMissing } from './why-missing.js';

/** Fewer than the connections of one role, so that transactions of all roles share them. */
export const SERVER_CONNECTIONS = 6;

/** Per database, as a service with all roles needs them. A statement that waits in PostgreSQL holds one. */
const ORDINARY_CONNECTIONS = 40;

/** The reason why tests through PgBouncer cannot run here, or null when they can. */
export function pgbouncerMissing(): string | null {
  const isMissing = whyMissing('pgbouncer', '--version') !== null;
  return isMissing ? 'pgbouncer is not installed (apt-get install pgbouncer)' : null;
}

interface PgBouncerSettings {
  /** Accepts connections to every database of that server. */
  readonly forAll?: boolean;
  readonly poolMode?: 'transaction' | 'session';
  /** Drops startup options (`ignore_startup_parameters`) instead of refusing the connection. */
  readonly dropsOptions?: boolean;
}

/** A PgBouncer in front of a database, by default in transaction mode with strict settings. */
export class PgBouncer {
  private constructor(
    private readonly child: ChildProcess,
    private readonly folder: string,
    /** The URL of the same database through the pooler. */
    readonly url: string,
  ) {}

  static async start(
    databaseUrl: string,
    { forAll = false, poolMode = 'transaction', dropsOptions = false }: PgBouncerSettings = {},
  ): Promise<PgBouncer> {
    const target = new URL(databaseUrl);
    const folder = mkdtempSync(path.join(tmpdir(), 'esim-pgbouncer-'));
    const port = await freePort();
    const name = target.pathname.slice(1);
    const server = `host=${target.hostname} port=${target.port}`;
    writeFileSync(
      path.join(folder, 'users.txt'),
      [target.username, SERVICE_ROLE]
        .map((name) => `"${name}" "${decodeURIComponent(target.password)}"\n`)
        .join(''),
    );
    writeFileSync(
      path.join(folder, 'pgbouncer.ini'),
      [
        '[databases]',
        forAll ? `* = ${server}` : `${name} = ${server} dbname=${name}`,
        '[pgbouncer]',
        'listen_addr = 127.0.0.1',
        `listen_port = ${port}`,
        'unix_socket_dir =',
        `pool_mode = ${poolMode}`,
        ...(dropsOptions ? ['ignore_startup_parameters = extra_float_digits,options'] : []),
        `default_pool_size = ${forAll ? ORDINARY_CONNECTIONS : SERVER_CONNECTIONS}`,
        'max_client_conn = 2000',
        'auth_type = trust',
        `auth_file = ${path.join(folder, 'users.txt')}`,
        // The test's own connections must see the pooler's sessions unchanged.
        'server_reset_query_always = 0',
      ].join('\n'),
    );
    chmodSync(folder, 0o755);
    // PgBouncer refuses to run as root.
    const user = process.getuid?.() === 0 ? ['-u', 'nobody'] : [];
    const child = spawn('pgbouncer', [...user, path.join(folder, 'pgbouncer.ini')], { stdio: 'ignore' });
    const url = overTcp(databaseUrl);
    url.port = String(port);
    url.hostname = '127.0.0.1';
    const bouncer = new PgBouncer(child, folder, url.href);
    await eventually('PgBouncer answers', () => bouncer.answers());
    return bouncer;
  }

  async stop(): Promise<void> {
    if (this.child.exitCode === null && this.child.signalCode === null) {
      const ended = once(this.child, 'exit');
      this.child.kill('SIGKILL');
      await ended;
    }
    rmSync(this.folder, { recursive: true, force: true });
  }

  private async answers(): Promise<boolean> {
    const client = new Client({ connectionString: this.url });
    client.on('error', () => undefined);
    try {
      await client.connect();
      await client.query('SELECT 1');
      return true;
    } catch {
      return false;
    } finally {
      await client.end().catch(() => undefined);
    }
  }
}
