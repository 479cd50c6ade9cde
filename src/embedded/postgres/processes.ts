import { execFile } from 'node:child_process';
import { readdir, readFile, readlink, rm } from 'node:fs/promises';
import path from 'node:path';
import { promisify } from 'node:util';

/** A running process, as far as the supervisor cares. A zombie does not run: it only waits to be reaped. */
interface RunningProcess {
  readonly parentPid: number;
  /** Whether it is a PostgreSQL process working in the data directory asked about. */
  readonly servesDataDir: boolean;
}

/**
 * Whether `pid` is a PostgreSQL process of exactly this cluster. A bare pid proves nothing: after a crash the
 * system may have given it to anybody.
 * @param dataDir real path (symbolic links resolved)
 */
export async function isPostgresOf(pid: number, dataDir: string): Promise<boolean> {
  return (await inspect(pid, dataDir))?.servesDataDir ?? false;
}

/** Whether `pid` is running and was started by `parentPid`, which is still alive. */
export async function isChildOf(pid: number, parentPid: number): Promise<boolean> {
  // An orphan is handed to another parent, so the recorded one being its parent proves that it lives.
  return (await inspect(pid, ''))?.parentPid === parentPid;
}

/** Whether a process with this pid runs. */
export async function isRunning(pid: number): Promise<boolean> {
  return (await inspect(pid, '')) !== undefined;
}

/** The pids of all PostgreSQL processes of this cluster; always empty where there is no /proc. */
export async function postgresProcessesOf(dataDir: string): Promise<number[]> {
  const names = await readdir('/proc').catch(() => []);
  const pids = names.filter((name) => /^\d+$/.test(name)).map(Number);
  const ours = await Promise.all(pids.map((pid) => isPostgresOf(pid, dataDir)));
  return pids.filter((_, index) => ours[index]);
}

/** Those of them that a server has forked: unlike the server itself, they carry a title in place of arguments. */
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

async function inspectProc(pid: number, dataDir: string): Promise<RunningProcess | undefined> {
  const stat = await readFile(`/proc/${pid}/stat`, 'utf8').catch(() => undefined);
  if (stat === undefined) return undefined;
  // "pid (name) state parent ...", and the name may itself hold spaces and parentheses.
  const nameEnd = stat.lastIndexOf(')');
  const [state, parent] = stat.slice(nameEnd + 2).split(' ');
  if (state === 'Z' || state === 'X') return undefined;
  const isPostgres = stat.slice(stat.indexOf('(') + 1, nameEnd) === 'postgres';
  // Every PostgreSQL process changes into its data directory. Unreadable means another user's process.
  const cwd = await readlink(`/proc/${pid}/cwd`).catch(() => undefined);
  return { parentPid: Number(parent), servesDataDir: isPostgres && cwd === dataDir };
}

async function inspectPs(pid: number, dataDir: string): Promise<RunningProcess | undefined> {
  const columns = ['-o', 'ppid=,stat=,command=', '-p', String(pid)];
  const found = await promisify(execFile)('ps', columns).catch(() => undefined);
  const match = /^\s*(\d+)\s+(\S+)\s+(.*)$/m.exec(found?.stdout ?? '');
  const [, parent, state = '', command = ''] = match ?? [];
  if (!match || state.startsWith('Z')) return undefined;
  const servesDataDir = /\bpostgres\b/.test(command) && command.includes(` ${dataDir} `);
  return { parentPid: Number(parent), servesDataDir };
}

/** The server setting that names the pid of the process that started it. */
export const STARTED_BY = 'embedded.started_by';

/** What `postmaster.pid` says about the server that last opened a data directory. */
export interface ServerLock {
  readonly pid: number;
  readonly port: number;
  /** `ready` (accepts connections), `starting` (may be recovering for long), `stopping`, or empty. */
  readonly status: string;
}

/** Reads `postmaster.pid`; undefined when it is absent or does not hold a pid. */
export async function readLock(dataDir: string): Promise<ServerLock | undefined> {
  const text = await readFile(lockFileOf(dataDir), 'utf8').catch(() => '');
  const lines = text.split('\n').map((line) => line.trim());
  // A single-user backend writes its pid with a minus sign.
  const pid = Math.abs(Number.parseInt(lines[0] ?? '', 10));
  if (!(pid > 0)) return undefined;
  return { pid, port: Number(lines[3]), status: lines[7] ?? '' };
}

/** Whether the process that started the server lives, which alone then decides when the server stops. */
export async function hasLivingOwner(dataDir: string, lock: ServerLock): Promise<boolean> {
  // PostgreSQL keeps the command line of the running server here.
  const options = await readFile(path.join(dataDir, 'postmaster.opts'), 'utf8').catch(() => '');
  const owner = new RegExp(`${STARTED_BY}=(\\d+)`).exec(options)?.[1];
  return owner !== undefined && isChildOf(lock.pid, Number(owner));
}

/** Removes a lock that names no process, which a power failure can leave and PostgreSQL refuses to overcome. */
export async function removeMeaninglessLock(dataDir: string): Promise<void> {
  if (!(await readLock(dataDir))) await rm(lockFileOf(dataDir), { force: true });
}

function lockFileOf(dataDir: string): string {
  return path.join(dataDir, 'postmaster.pid');
}
