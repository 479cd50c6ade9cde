import { readFile, rm } from 'node:fs/promises';
import path from 'node:path';
import { isChildOf } from './processes.js';

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
