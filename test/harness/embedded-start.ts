import { spawnSync } from 'node:child_process';
import { mkdtempSync, realpathSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { postgresProcessesOf } from '../../src/embedded/postgres/postgres-process.js';
import { NodeChild, PROJECT_ROOT } from './child-process.js';
import { eventually } from './eventually.js';
import { freePort } from './free-port.js';
import { HttpClient } from './http-client.js';

/** A data directory of an embedded start, with ports of its own. */
export class EmbeddedPlace {
  private readonly folder = mkdtempSync(path.join(tmpdir(), 'esim-start-'));
  readonly dataDir = path.join(realpathSync(this.folder), 'data');
  private readonly started: NodeChild[] = [];

  private constructor(
    readonly port: number,
    readonly adminPort: number,
    readonly portalPort: number,
  ) {}

  static async make(): Promise<EmbeddedPlace> {
    return new EmbeddedPlace(await freePort(), await freePort(), await freePort());
  }

  /** What `npm start` does, with nothing set but where, and a limit that so much asking does not meet. */
  launch(env: Readonly<Record<string, string>> = {}): NodeChild {
    const child = NodeChild.launch({
      args: ['--enable-source-maps', 'scripts/start.mjs'],
      env: {
        // A developer's own .env is not what is tested.
        ENV_FILE: '',
        DATA_DIR: this.dataDir,
        PORT: String(this.port),
        ADMIN_PORT: String(this.adminPort),
        PORTAL_PORT: String(this.portalPort),
        HOST: '127.0.0.1',
        // The machine may be busy with other tests: neither a stop nor a wait for a connection is cut short.
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

  postgresPids(): Promise<number[]> {
    return postgresProcessesOf(path.join(this.dataDir, 'postgres'));
  }

  /** Programs that were started with this folder, by what they were started with: the simulated provider. */
  companions(): string[] {
    const { stdout } = spawnSync('pgrep', ['-fa', `simulators/.*${this.dataDir}`]);
    return stdout.toString().split('\n').filter(Boolean);
  }

  /** SIGKILL to PostgreSQL alone. */
  async killPostgres(): Promise<void> {
    for (const pid of await this.postgresPids()) kill(pid);
  }

  /** SIGKILL to Node.js and to every process of its PostgreSQL. */
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
    // Its postmaster took it along.
  }
}

/** What a newcomer reads in the banner. */
export interface Banner {
  readonly key: string;
  readonly api: HttpClient;
  /** The link into the portal, to be opened once. */
  readonly portalLink: string;
  /** The commands to paste, in order, each with the lines before it that set the keys. */
  readonly curlLines: readonly string[];
}

export function readBanner({ stdout }: NodeChild): Banner {
  const key = /svc_sk_test_[A-Za-z0-9]{32}/.exec(stdout)![0];
  const baseUrl = `http://${/ '([\d.:]+)\/v1\/catalog/.exec(stdout)![1]}`;
  const exported = stdout.match(/^export .*$/gm)!.join('\n');
  const commands = stdout.match(/^curl (?:.*\\\n)*.*$/gm) ?? [];
  return {
    key,
    api: new HttpClient(baseUrl, key),
    portalLink: /^ +(http:\S+#code=\S+)$/m.exec(stdout)![1]!,
    curlLines: commands.map((command) => `${exported}\n${command}`),
  };
}

/** Pastes a line into a shell. */
export function paste(line: string): { readonly status: number; readonly body: unknown } {
  const { stdout, stderr } = spawnSync('bash', ['-c', `${line} -w '\\n%{http_code}'`], { cwd: PROJECT_ROOT });
  const lines = stdout.toString().split('\n');
  try {
    return { status: Number(lines.at(-1)), body: JSON.parse(lines.slice(0, -1).join('\n')) };
  } catch {
    throw new Error(`${line}\nprinted: ${stdout.toString()}${stderr.toString()}`);
  }
}
