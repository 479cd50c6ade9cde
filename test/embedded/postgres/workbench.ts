import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { rm, stat } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { Client } from 'pg';
import ts from 'typescript';
import { afterAll, onTestFinished } from 'vitest';
import {
  type EmbeddedPostgres,
  type EmbeddedPostgresOptions,
  startEmbeddedPostgres,
} from '../../../src/embedded/postgres/index.js';
import { postgresProcessesOf } from '../../../src/embedded/postgres/postgres-process.js';
import { eventually } from '../../harness/eventually.js';

const SOURCES = path.resolve(import.meta.dirname, '../../../src/embedded/postgres');
/** Inside node_modules, so that the compiled copy finds the same packages. */
const COMPILED = path.resolve(import.meta.dirname, '../../../node_modules/.cache/embedded-postgres-test');

export const isRoot = process.getuid?.() === 0;
export const isLinux = process.platform === 'linux';

/** These tests kill processes but never cut the power. */
const FAST = { fsync: 'off' };

/** Returns a new data directory path below a folder of mode 0700. Its contents are removed at the end. */
export function newDataDir(): string {
  const root = newFolder();
  const dataDir = path.join(root, '.data', 'postgres');
  onTestFinished(async () => {
    await killAll(await postgresProcessesOf(dataDir));
    await rm(root, { recursive: true, force: true, maxRetries: 10 });
  });
  return dataDir;
}

/**
 * A cluster with one committed row (`keptRows`) and no running server. The tests of a file share it, because creating
 * one takes a second. They may kill any process, but must restore the files that they change.
 */
export async function sharedCluster(): Promise<string> {
  const dataDir = await (shared ??= makeSharedCluster());
  onTestFinished(async () => killAll(await postgresProcessesOf(dataDir)));
  return dataDir;
}

let shared: Promise<string> | undefined;

async function makeSharedCluster(): Promise<string> {
  const root = newFolder();
  removedAfterTests.push(root);
  const dataDir = path.join(root, '.data', 'postgres');
  const server = await startEmbeddedPostgres({ dataDir, settings: FAST });
  await sql(server.url(), 'CREATE TABLE kept AS SELECT 42 AS answer');
  await server.stop();
  return dataDir;
}

const removedAfterTests: string[] = [];
afterAll(() => {
  for (const folder of removedAfterTests) rmSync(folder, { recursive: true, force: true });
});

function newFolder(): string {
  const folder = mkdtempSync(path.join(tmpdir(), 'embedded-postgres-'));
  chmodSync(folder, 0o700);
  return folder;
}

/** Starts a server in this process and stops it after the test. */
export async function start(
  dataDir: string,
  options: Partial<EmbeddedPostgresOptions> = {},
): Promise<EmbeddedPostgres> {
  const server = await startEmbeddedPostgres({ dataDir, settings: FAST, ...options });
  onTestFinished(() => server.stop());
  return server;
}

/** The rows of one statement, over a separate connection. */
export async function sql(url: string, text: string): Promise<Record<string, unknown>[]> {
  const client = new Client(url);
  client.on('error', () => {});
  await client.connect();
  try {
    const { rows } = await client.query<Record<string, unknown>>(text);
    return rows;
  } finally {
    await client.end().catch(() => {});
  }
}

/** The row of `sharedCluster`, if it is still there. */
export async function keptRows(url: string): Promise<Record<string, unknown>[]> {
  return sql(url, 'SELECT answer FROM kept');
}

export function lockFile(dataDir: string): string {
  return path.join(dataDir, 'postmaster.pid');
}

export function postmasterPid(dataDir: string): number {
  return Number.parseInt(readFileSync(lockFile(dataDir), 'utf8'), 10);
}

export async function until(condition: () => boolean | Promise<boolean>): Promise<void> {
  await eventually('a condition that holds', condition);
}

export function runs(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
}

/** Starts a process unrelated to PostgreSQL, under the system user of `dataDir`. */
export async function strangerOwning(dataDir: string): Promise<number> {
  const { uid, gid } = await stat(dataDir);
  const stranger = spawn('sleep', ['60'], { stdio: 'ignore', ...(isRoot && { uid, gid }) });
  onTestFinished(() => killAll([stranger.pid]));
  await once(stranger, 'spawn');
  return stranger.pid ?? 0;
}

/** A Node.js process in a separate process group that runs a server on `dataDir`. */
export class Application {
  private output = '';

  private constructor(private readonly process: ChildProcess) {
    process.stdout?.setEncoding('utf8').on('data', (text: string) => (this.output += text));
  }

  static launch(dataDir: string, env: NodeJS.ProcessEnv = process.env): Application {
    const child = spawn(process.execPath, [compiledApplication(), dataDir, JSON.stringify(FAST)], {
      detached: true,
      stdio: ['ignore', 'pipe', 'inherit'],
      env,
    });
    const application = new Application(child);
    onTestFinished(() => application.kill());
    return application;
  }

  /** Resolves with the URL of its server. */
  async ready(): Promise<string> {
    await until(() => this.output.includes('\n'));
    return this.output.trim();
  }

  /** Sends SIGINT to the whole process group, like Ctrl-C in a terminal. This application survives it. */
  interruptGroup(): void {
    process.kill(-(this.process.pid ?? NaN), 'SIGINT');
  }

  async kill(): Promise<void> {
    if (this.process.exitCode !== null || this.process.signalCode !== null) return;
    const ended = once(this.process, 'exit');
    this.process.kill('SIGKILL');
    await ended;
  }
}

/** A `setpriv` that pauses right after its start until it is released, as on a busy machine. */
export class LateSetpriv {
  private readonly folder = newFolder();
  private readonly begun = path.join(this.folder, 'begun');
  private readonly real = execFileSync('which', ['setpriv'], { encoding: 'utf8' }).trim();

  constructor() {
    removedAfterTests.push(this.folder);
    const script = `#!/bin/sh
case "$1" in --help) exec ${this.real} --help ;; esac
echo $$ >${this.begun}.new && mv ${this.begun}.new ${this.begun}
while ! test -e ${this.folder}/go; do sleep 0.01; done
exec ${this.real} "$@"
`;
    writeFileSync(path.join(this.folder, 'setpriv'), script, { mode: 0o755 });
  }

  /** The environment of an application that uses it. */
  get env(): NodeJS.ProcessEnv {
    return { ...process.env, PATH: `${this.folder}:${process.env['PATH']}` };
  }

  /** Resolves with the pid of the process that becomes PostgreSQL. */
  async begins(): Promise<number> {
    await until(() => existsSync(this.begun));
    return Number(readFileSync(this.begun, 'utf8'));
  }

  goOn(): void {
    writeFileSync(path.join(this.folder, 'go'), '');
  }
}

async function killAll(pids: readonly (number | undefined)[]): Promise<void> {
  for (const pid of pids) {
    try {
      if (pid !== undefined) process.kill(pid, 'SIGKILL');
    } catch {
      // The process has already exited.
    }
  }
  await until(() => !pids.some((pid) => pid !== undefined && runs(pid)));
}

/** Compiles the supervisor for plain Node.js, without building the whole project. */
function compiledApplication(): string {
  const folder = path.join(COMPILED, String(process.pid));
  mkdirSync(folder, { recursive: true });
  removedAfterTests.push(folder);
  writeFileSync(path.join(folder, 'package.json'), '{ "type": "module" }');
  for (const name of readdirSync(SOURCES)) {
    const source = readFileSync(path.join(SOURCES, name), 'utf8');
    const compilerOptions = { module: ts.ModuleKind.ESNext, target: ts.ScriptTarget.ES2024 };
    const { outputText } = ts.transpileModule(source, { compilerOptions });
    writeFileSync(path.join(folder, name.replace(/\.ts$/, '.js')), outputText);
  }
  const script = path.join(folder, 'application.js');
  writeFileSync(script, APPLICATION);
  return script;
}

const APPLICATION = `
import { startEmbeddedPostgres } from './index.js';
process.on('SIGINT', () => {});
const [dataDir, settings] = process.argv.slice(2);
const server = await startEmbeddedPostgres({ dataDir, settings: JSON.parse(settings) });
console.log(server.url());
setInterval(() => {}, 60_000);
`;
