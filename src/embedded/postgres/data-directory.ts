import { randomBytes } from 'node:crypto';
import { chown, lchown, readdir, readFile, rm, stat } from 'node:fs/promises';
import path from 'node:path';
import { systemCode } from './errors.js';
import { PORT_FILE } from './port.js';
import type { SystemAccount } from './privileges.js';
import { isRunning } from './processes.js';

/**
 * What a data directory holds:
 * `absent`: nothing, or an empty folder;
 * `complete`: a cluster that initdb has finished;
 * `incomplete`: what an initdb leaves behind when it is killed;
 * `foreign`: files that are not PostgreSQL's, which must never be touched.
 */
export type DataDirectoryContent = 'absent' | 'complete' | 'incomplete' | 'foreign';

/** The last thing initdb makes are these databases: template1, template0 and postgres, by object id. */
const LAST_MADE = ['base/1', 'base/4', 'base/5'].map((database) => `${database}/PG_VERSION`);
const CLUSTER_FILES = ['PG_VERSION', 'postgresql.conf', 'pg_hba.conf', 'global/pg_control', ...LAST_MADE];
const POSTGRES_NAME =
  /^(?:base|global|PG_VERSION|pg_\w+(?:\.conf)?|postgresql\.(?:auto\.)?conf|postmaster\.\w+)$/;

/** @throws the system error when the folder cannot be read, or is not a folder */
export async function contentOf(dataDir: string): Promise<DataDirectoryContent> {
  const names = await namesIn(dataDir);
  if (names.length === 0) return 'absent';
  // A cluster that has run is complete whatever it lost since; PostgreSQL itself then says what is wrong.
  if (names.includes(PORT_FILE)) return 'complete';
  const present = await Promise.all(CLUSTER_FILES.map((file) => exists(path.join(dataDir, file))));
  if (present.every(Boolean)) return 'complete';
  return names.every((name) => POSTGRES_NAME.test(name)) ? 'incomplete' : 'foreign';
}

/** Who owns the directory; undefined when it does not exist. */
export async function ownerOf(dataDir: string): Promise<SystemAccount | undefined> {
  return stat(dataDir).catch(() => undefined);
}

/** The major version of PostgreSQL that made the cluster, for example 18. */
export async function clusterVersionOf(dataDir: string): Promise<number> {
  return Number.parseInt(await readFile(path.join(dataDir, 'PG_VERSION'), 'utf8'), 10);
}

/** Gives the directory and all that is in it to `account`: PostgreSQL opens only what it owns. */
export async function giveTo(account: SystemAccount, dataDir: string): Promise<void> {
  const entries = await readdir(dataDir, { recursive: true });
  await Promise.all(entries.map((entry) => lchown(path.join(dataDir, entry), account.uid, account.gid)));
  await chown(dataDir, account.uid, account.gid);
}

async function namesIn(folder: string): Promise<string[]> {
  try {
    return await readdir(folder);
  } catch (error) {
    if (systemCode(error) === 'ENOENT') return [];
    throw error;
  }
}

async function exists(file: string): Promise<boolean> {
  return stat(file).then(
    () => true,
    () => false,
  );
}

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
