import { readFile, rm } from 'node:fs/promises';
import path from 'node:path';

/** What `postmaster.pid` says about the server that last opened a data directory. */
export interface ServerLock {
  readonly pid: number;
  readonly port: number;
  /** The server accepts connections and is not about to stop. */
  readonly ready: boolean;
}

/** Reads `postmaster.pid`; undefined when it is absent or does not hold a pid. */
export async function readLock(dataDir: string): Promise<ServerLock | undefined> {
  const text = await readFile(lockFileOf(dataDir), 'utf8').catch(() => '');
  const lines = text.split('\n').map((line) => line.trim());
  // A single-user backend writes its pid with a minus sign.
  const pid = Math.abs(Number.parseInt(lines[0] ?? '', 10));
  if (!(pid > 0)) return undefined;
  return { pid, port: Number(lines[3]), ready: lines[7] === 'ready' };
}

/** Removes a lock that names no process, which a power failure can leave and PostgreSQL refuses to overcome. */
export async function removeMeaninglessLock(dataDir: string): Promise<void> {
  if (!(await readLock(dataDir))) await rm(lockFileOf(dataDir), { force: true });
}

function lockFileOf(dataDir: string): string {
  return path.join(dataDir, 'postmaster.pid');
}
