import { type ChildProcessByStdio, execFile, spawn } from 'node:child_process';
import { readdir, readFile, readlink, rm } from 'node:fs/promises';
import path from 'node:path';
import type { Readable } from 'node:stream';
import { setTimeout as sleep } from 'node:timers/promises';
import { promisify } from 'node:util';
import { systemCode } from './errors.js';

/** A PostgreSQL executable that this process has spawned. */
export interface PostgresProcess {
  readonly pid: number | undefined;
  /** Resolves once the process has ended, or could not be started; never rejects. */
  readonly ended: Promise<ProcessEnd>;
  hasEnded(): boolean;
  /** The last fatal message on stderr; empty when there is none. */
  fatalWords(): string;
  /** The fatal message, or the last line of stderr. */
  lastWords(): string;
}

export interface ProcessEnd {
  readonly ok: boolean;
  /** For example `signal SIGKILL` or `exit code 1`. */
  readonly how: string;
}

export interface RunOptions {
  /** From `commandPrefix`. */
  readonly prefix: readonly string[];
  /** Runs in its own session, which Ctrl-C in the terminal does not reach. */
  readonly detached: boolean;
  readonly env?: Readonly<Record<string, string>>;
}

const STDERR_KEPT_CHARS = 8_000;
/** How long stderr may stay open after the exit; an orphaned backend can hold it open forever. */
const STDERR_GRACE_MS = 200;

/** Starts an executable without waiting. */
export function runPostgres(binary: string, args: readonly string[], options: RunOptions): PostgresProcess {
  const [file = binary, ...rest] = [...options.prefix, binary, ...args];
  const child = spawn(file, rest, {
    detached: options.detached,
    stdio: ['ignore', 'ignore', 'pipe'],
    // Nothing is inherited: PGDATA, PGPORT and similar variables would change the server. The fixed language keeps
    // messages recognizable; the fixed zone gives the cluster the same default time zone on every machine.
    env: { PATH: process.env['PATH'] ?? '', LC_ALL: 'C', TZ: 'UTC', ...options.env },
  });
  let stderr = '';
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    stderr = (stderr + text).slice(-STDERR_KEPT_CHARS);
  });
  let hasEnded = false;
  const ended = endOf(child, (message) => (stderr += `${message}\n`)).finally(() => (hasEnded = true));
  return {
    pid: child.pid,
    ended,
    hasEnded: () => hasEnded,
    fatalWords: () => withoutPrefix(fatalLineIn(stderr)),
    lastWords: () => withoutPrefix(fatalLineIn(stderr) ?? linesOf(stderr).at(-1)),
  };
}

async function endOf(
  child: ChildProcessByStdio<null, null, Readable>,
  onSpawnError: (message: string) => void,
): Promise<ProcessEnd> {
  const closed = new Promise<void>((resolve) => child.once('close', () => resolve()));
  const end = await new Promise<ProcessEnd>((resolve) => {
    child.once('error', (error) => {
      onSpawnError(error.message);
      resolve({ ok: false, how: 'not started' });
    });
    child.once('exit', (code, signal) =>
      resolve({ ok: code === 0, how: signal ? `signal ${signal}` : `exit code ${code}` }),
    );
  });
  await Promise.race([closed, sleep(STDERR_GRACE_MS, undefined, { ref: false })]);
  return end;
}

function fatalLineIn(stderr: string): string | undefined {
  return linesOf(stderr).findLast((line) => /\b(?:FATAL|PANIC):/.test(line));
}

function linesOf(text: string): string[] {
  return text.split('\n').filter((line) => line.trim() !== '');
}

/** Removes a prefix such as `2026-01-31 12:00:00.000 UTC [4711] FATAL:`. */
function withoutPrefix(line = ''): string {
  return line.replace(/^.*?\[\d+\] [A-Z]+:\s*/, '').trim();
}

/**
 * Begins with the fast shutdown, which ends sessions and writes a checkpoint. The later signals require crash recovery.
 */
const ESCALATION = [
  { signal: 'SIGINT', waitMs: 8_000 },
  { signal: 'SIGQUIT', waitMs: 8_000 },
  { signal: 'SIGKILL', waitMs: 8_000 },
] as const;

/**
 * Stops a server: SIGINT, after 8 s SIGQUIT, after 8 s more SIGKILL. Resolves when `ended` does.
 * @param signal the first signal to send
 */
export async function shutDown(
  pid: number,
  ended: Promise<unknown>,
  signal: 'SIGINT' | 'SIGQUIT' = 'SIGINT',
): Promise<void> {
  const first = ESCALATION.findIndex((step) => step.signal === signal);
  for (const step of ESCALATION.slice(first)) {
    send(pid, step.signal);
    if (await settlesWithin(ended, step.waitMs)) return;
  }
}

function send(pid: number, signal: NodeJS.Signals): void {
  try {
    process.kill(pid, signal);
  } catch (error) {
    if (systemCode(error) !== 'ESRCH') throw error;
  }
}

async function settlesWithin(promise: Promise<unknown>, ms: number): Promise<boolean> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<false>((resolve) => {
    timer = setTimeout(() => resolve(false), ms);
  });
  try {
    return await Promise.race([promise.then(() => true), late]);
  } finally {
    clearTimeout(timer);
  }
}

/** Facts about a running process. A zombie does not count as running: it only waits to be reaped. */
interface RunningProcess {
  readonly parentPid: number;
  /** For comparison only: clock ticks since boot on Linux, a date elsewhere. */
  readonly startedAt: string;
  /** Whether it is a PostgreSQL process in the given data directory. */
  readonly servesDataDir: boolean;
}

/**
 * Whether `pid` is a PostgreSQL process of exactly this cluster. A bare pid proves nothing: after a crash the system
 * may have reused it.
 * @param dataDir real path (symbolic links resolved)
 */
export async function isPostgresOf(pid: number, dataDir: string): Promise<boolean> {
  return (await inspect(pid, dataDir))?.servesDataDir ?? false;
}

/** Whether `pid` is running and its parent `parentPid`, which started it, is still alive. */
export async function isChildOf(pid: number, parentPid: number): Promise<boolean> {
  // The system gives an orphan another parent, so an unchanged parent is still alive.
  return (await inspect(pid, ''))?.parentPid === parentPid;
}

/** Whether a process with this pid runs. */
export async function isRunning(pid: number): Promise<boolean> {
  return (await inspect(pid, '')) !== undefined;
}

/** Start time of the process as text, which differs for a later process with the same pid; undefined when none runs. */
export async function startTimeOf(pid: number): Promise<string | undefined> {
  return (await inspect(pid, ''))?.startedAt;
}

/** The pids of all PostgreSQL processes of this cluster; always empty on systems without /proc. */
export async function postgresProcessesOf(dataDir: string): Promise<number[]> {
  const names = await readdir('/proc').catch(() => []);
  const pids = names.filter((name) => /^\d+$/.test(name)).map(Number);
  const ours = await Promise.all(pids.map((pid) => isPostgresOf(pid, dataDir)));
  return pids.filter((_, index) => ours[index]);
}

/**
 * The cluster's processes that a server has forked. Unlike the server itself, they show a title instead of arguments.
 */
export async function forkedProcessesOf(dataDir: string): Promise<number[]> {
  const pids = await postgresProcessesOf(dataDir);
  const titles = await Promise.all(
    pids.map((pid) => readFile(`/proc/${pid}/cmdline`, 'utf8').catch(() => '')),
  );
  return pids.filter((_, index) => titles[index]?.startsWith('postgres: '));
}

function inspect(pid: number, dataDir: string): Promise<RunningProcess | undefined> {
  return process.platform === 'linux' ? inspectProc(pid, dataDir) : inspectPs(pid, dataDir);
}

/** Index among the fields of /proc/<pid>/stat after the name. */
const START_TIME = 19;

async function inspectProc(pid: number, dataDir: string): Promise<RunningProcess | undefined> {
  const stat = await readFile(`/proc/${pid}/stat`, 'utf8').catch(() => undefined);
  if (stat === undefined) return undefined;
  // The format is "pid (name) state parent ...", and the name may itself contain spaces and parentheses.
  const nameEnd = stat.lastIndexOf(')');
  const fields = stat.slice(nameEnd + 2).split(' ');
  const [state, parent] = fields;
  if (state === 'Z' || state === 'X') return undefined;
  const isPostgres = stat.slice(stat.indexOf('(') + 1, nameEnd) === 'postgres';
  // Every PostgreSQL process changes into its data directory. An unreadable link belongs to another user's process.
  const cwd = await readlink(`/proc/${pid}/cwd`).catch(() => undefined);
  return {
    parentPid: Number(parent),
    startedAt: fields[START_TIME] ?? '',
    servesDataDir: isPostgres && cwd === dataDir,
  };
}

async function inspectPs(pid: number, dataDir: string): Promise<RunningProcess | undefined> {
  const columns = ['-o', 'ppid=,stat=,lstart=,command=', '-p', String(pid)];
  // In this locale, the date has five words.
  const env = { ...process.env, LC_ALL: 'C' };
  const found = await promisify(execFile)('ps', columns, { env }).catch(() => undefined);
  const match = /^\s*(\d+)\s+(\S+)\s+((?:\S+\s+){4}\S+)\s+(.*)$/m.exec(found?.stdout ?? '');
  const [, parent, state = '', startedAt = '', command = ''] = match ?? [];
  if (!match || state.startsWith('Z')) return undefined;
  const servesDataDir = /\bpostgres\b/.test(command) && command.includes(` ${dataDir} `);
  return { parentPid: Number(parent), startedAt, servesDataDir };
}

/** Server setting with the pid of the process that started the server. */
export const STARTED_BY = 'embedded.started_by';

/** Content of `postmaster.pid`: the server that last opened a data directory. */
export interface ServerLock {
  readonly pid: number;
  readonly port: number;
  /** `ready` (accepts connections), `starting` (may be recovering for a long time), `stopping`, or empty. */
  readonly status: string;
}

/** Reads `postmaster.pid`; undefined when it is absent or contains no pid. */
export async function readLock(dataDir: string): Promise<ServerLock | undefined> {
  const text = await readFile(lockFileOf(dataDir), 'utf8').catch(() => '');
  const lines = text.split('\n').map((line) => line.trim());
  // A single-user backend writes its pid with a minus sign.
  const pid = Math.abs(Number.parseInt(lines[0] ?? '', 10));
  if (!(pid > 0)) return undefined;
  return { pid, port: Number(lines[3]), status: lines[7] ?? '' };
}

/** Whether the process that started the server is alive; it alone then decides when the server stops. */
export async function hasLivingOwner(dataDir: string, lock: ServerLock): Promise<boolean> {
  // PostgreSQL stores the running server's command line here.
  const options = await readFile(path.join(dataDir, 'postmaster.opts'), 'utf8').catch(() => '');
  const owner = new RegExp(`${STARTED_BY}=(\\d+)`).exec(options)?.[1];
  return owner !== undefined && isChildOf(lock.pid, Number(owner));
}

/** Removes a lock without a pid, which a power failure can leave and PostgreSQL refuses to replace. */
export async function removeMeaninglessLock(dataDir: string): Promise<void> {
  if (!(await readLock(dataDir))) await rm(lockFileOf(dataDir), { force: true });
}

function lockFileOf(dataDir: string): string {
  return path.join(dataDir, 'postmaster.pid');
}
