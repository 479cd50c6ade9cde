import { randomBytes } from 'node:crypto';
import { link, open, readFile, rm } from 'node:fs/promises';
import { newDraftName } from './drafts.js';
import { EmbeddedPostgresError, orExplain, systemCode } from './errors.js';

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
