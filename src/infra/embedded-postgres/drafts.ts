import { randomBytes } from 'node:crypto';
import { readdir, rm, stat } from 'node:fs/promises';
import path from 'node:path';
import { isRunning } from './processes.js';

/** Making a draft takes about a second; one this old is abandoned, whoever has its pid now. */
const ABANDONED_AFTER_MS = 10 * 60_000;

/**
 * A name beside `dataDir` for something that is moved into place once it is complete, so that what is killed
 * half-way is never mistaken for the whole (D2).
 */
export function newDraftName(dataDir: string): string {
  return `${dataDir}.draft-${process.pid}-${randomBytes(4).toString('hex')}`;
}

/** Removes the drafts of processes that have been killed. */
export async function removeAbandonedDrafts(dataDir: string): Promise<void> {
  const parent = path.dirname(dataDir);
  const prefix = `${path.basename(dataDir)}.draft-`;
  for (const name of await readdir(parent)) {
    if (!name.startsWith(prefix)) continue;
    const draft = path.join(parent, name);
    const pid = Number.parseInt(name.slice(prefix.length), 10);
    const abandoned = !(await isRunning(pid)) || (await ageMs(draft)) > ABANDONED_AFTER_MS;
    // An initdb that is just being killed may still write into it; what is left goes at the next start.
    if (abandoned) await rm(draft, { recursive: true, force: true }).catch(() => {});
  }
}

async function ageMs(file: string): Promise<number> {
  const found = await stat(file).catch(() => undefined);
  return found ? Date.now() - found.mtimeMs : Infinity;
}
