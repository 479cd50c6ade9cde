import { spawnSync } from 'node:child_process';
import { mkdtempSync, realpathSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { postgresProcessesOf } from '../../src/embedded/postgres/postgres-process.js';
import { NodeChild, PROJECT_ROOT } from './child-process.js';
import { eventually } from './eventually.js';
import { freePort } from '../../chaos/free-port.js';
import { HttpClient } from './http-client.js';

/** A data directory and free ports for an embedded start. */
export class EmbeddedPlace {
  private readonly folder = mkdtempSync(path.join(tmpdir(), 'esim-start-'));
  readonly dataDir = path.join(realpathSync(this.folder), 'data');
  private readonly started: NodeChild[] = [];

  private constructor(
    readonly port: number,
    readonly adminPort: number,
    readonly portalPort: number,
    readonly installPort: number,
  ) {}

  static async make(): Promise<EmbeddedPlace> {
    return new EmbeddedPlace(await freePort(), await freePort(), await freePort(), await freePort());
  }

  /** Runs `npm start` with only the location set, and a rate limit that polling does not reach. */
  launch(env: Readonly<Record<string, string>> = {}, args: readonly string[] = []): NodeChild {
    const child = NodeChild.launch({
      args: ['--enable-source-maps', 'scripts/start.mjs', ...args],
      env: {
        // Ignore a developer's own .env.
        ENV_FILE: '',
        DATA_DIR: this.dataDir,
        PORT: String(this.port),
        ADMIN_PORT: String(this.adminPort),
        PORTAL_PORT: String(this.portalPort),
        INSTALL_PORT: String(this.installPort),
        HOST: '127.0.0.1',
        // Other tests may keep the machine busy, so neither a stop nor a wait for a connection may time out.
        SHUTDOWN_TIMEOUT_MS: '30000',
        DATABASE_POOL_WAIT_MS: '20000',
        RATE_LIMIT_PER_MINUTE: '6000000',
        RATE_LIMIT_BURST: '1000000',
        ADMIN_RATE_LIMIT_PER_MINUTE: '6000000',
        ADMIN_RATE_LIMIT_BURST: '1000000',
        ...env,
      },
    });
    this.started.push(child);
    return child;
  }

  /** The stderr lines of a start that must fail with exit code 1. */
  async refusal(env?: Readonly<Record<string, string>>, args?: readonly string[]): Promise<string[]> {
    const child = this.launch(env, args);
    const code = await child.exited();
    if (code !== 1 || /^ready$/m.test(child.stdout)) throw new Error(`not refused: ${code} ${child.stdout}`);
    return child.complaints;
  }

  postgresPids(): Promise<number[]> {
    return postgresProcessesOf(path.join(this.dataDir, 'postgres'));
  }

  /** Command lines of the simulated providers that were started with this folder. */
  companions(): string[] {
    const { stdout } = spawnSync('pgrep', ['-fa', `simulators/.*${this.dataDir}`]);
    return stdout.toString().split('\n').filter(Boolean);
  }

  /** Sends SIGKILL to PostgreSQL alone. */
  async killPostgres(): Promise<void> {
    for (const pid of await this.postgresPids()) kill(pid);
  }

  /** Sends SIGKILL to Node.js and to every PostgreSQL process. */
  async killEverything(): Promise<void> {
    const pids = await this.postgresPids();
    await Promise.all(this.started.map((child) => child.kill()));
    for (const pid of [...pids, ...(await this.postgresPids())]) kill(pid);
    await eventually('PostgreSQL is dead', async () => (await this.postgresPids()).length === 0);
  }

  async remove(): Promise<void> {
    await this.killEverything();
    rmSync(this.folder, { recursive: true, force: true, maxRetries: 10 });
  }
}

function kill(pid: number): void {
  try {
    process.kill(pid, 'SIGKILL');
  } catch {
    // The postmaster has already ended it.
  }
}

/** The parts of the startup banner. */
export interface Banner {
  readonly key: string;
  readonly api: HttpClient;
  /** The single-use link into the portal. */
  readonly portalLink: string;
  /** The lines to paste as one block, keys first. */
  readonly block: string;
}

export function readBanner({ stdout }: NodeChild): Banner {
  const key = /svc_sk_test_[A-Za-z0-9]{32}/.exec(stdout)![0];
  const baseUrl = /^export ESIM_BASE_URL=(\S+)$/m.exec(stdout)![1]!;
  const lines = stdout.slice(stdout.indexOf('export ESIM_BASE_URL')).split('\n');
  return {
    key,
    api: new HttpClient(baseUrl, key),
    portalLink: /^ +(http:\S+#code=\S+)$/m.exec(stdout)![1]!,
    // A pipe also gets log lines, between any two lines.
    block: lines
      .slice(
        0,
        lines.findIndex((line) => line.startsWith('  Paste')),
      )
      .filter((line) => !line.startsWith('{'))
      .join('\n'),
  };
}

/** The available shells that people paste into. */
export function shells(): string[] {
  return ['bash', 'zsh'].filter((shell) => spawnSync(shell, ['-c', ':']).error === undefined);
}

/** Pastes lines into an interactive shell without user settings, and returns its output on each stream. */
export function pasteInto(
  shell: string,
  block: string,
  cwd = PROJECT_ROOT,
): { readonly stdout: string; readonly stderr: string } {
  const quiet = { PS1: '', PS2: '', PROMPT_EOL_MARK: '', HISTFILE: '/dev/null', HOME: '/nonexistent' };
  const settings = shell === 'zsh' ? ['-f'] : ['--norc', '--noprofile', '--noediting'];
  const { stdout, stderr } = spawnSync(shell, [...settings, '-i'], {
    cwd,
    input: `${block}\n`,
    env: { PATH: process.env['PATH'], TERM: 'dumb', ...quiet },
    encoding: 'utf8',
  });
  return { stdout, stderr };
}
