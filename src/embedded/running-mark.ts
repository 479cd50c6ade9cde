import { readFileSync, rmSync } from 'node:fs';
import { startTimeOf } from './postgres/index.js';
import { writeSecretFile } from './development-settings.js';

/** The process that uses a data directory, as stored in its file. */
interface RunningMark {
  readonly pid: number;
  /** Distinguishes the process from a later one with the same pid. */
  readonly startedAt: string;
  /** The partner API. */
  readonly url: string;
}

/**
 * Marks the data directory as used by this process and returns the function that removes the mark.
 * @throws Error when a running process uses the directory; the mark of a killed one is replaced
 */
export async function markRunning(file: string, url: string): Promise<() => Promise<void>> {
  await assertNotRunning(file);
  const startedAt = await startTimeOf(process.pid);
  if (startedAt === undefined) return async () => {};
  writeSecretFile(file, JSON.stringify({ pid: process.pid, startedAt, url } satisfies RunningMark));
  return async () => {
    if (readMark(file)?.pid === process.pid) rmSync(file, { force: true });
    await Promise.resolve();
  };
}

/** @throws Error with the running process's address and pid, and the ways to proceed */
async function assertNotRunning(file: string): Promise<void> {
  const mark = readMark(file);
  if (mark === null || mark.pid === process.pid) return;
  if ((await startTimeOf(mark.pid)) !== mark.startedAt) return;
  throw new Error(
    [
      `already running here, at ${mark.url} (process ${mark.pid})`,
      'Stop it (Ctrl-C in its terminal), or start another one with its own folder and ports:',
      '  DATA_DIR=<folder> PORT=<port> ADMIN_PORT=<port> PORTAL_PORT=<port> INSTALL_PORT=<port> npm start',
    ].join('\n'),
  );
}

/** Null when the file is missing or was truncated by a kill. */
function readMark(file: string): RunningMark | null {
  try {
    return JSON.parse(readFileSync(file, 'utf8')) as RunningMark;
  } catch {
    return null;
  }
}
