import { access, constants, mkdir, realpath } from 'node:fs/promises';
import path from 'node:path';
import { loadBinaries, majorVersionOf } from './binaries.js';
import { clusterVersionOf, contentOf, giveTo, ownerOf } from './data-directory.js';
import { EmbeddedPostgresError, orExplain, systemCode } from './errors.js';
import { initialiseCluster, setAside } from './initialise.js';
import { ensurePassword, readPassword } from './password.js';
import { accountForRoot, commandPrefix } from './privileges.js';

/** A complete cluster on disk and what is needed to run it. */
export interface Cluster {
  /** Real path (symbolic links resolved), as PostgreSQL and /proc report it. */
  readonly dataDir: string;
  readonly password: string;
  /** Absolute path of the `postgres` executable. */
  readonly postgres: string;
  /** See `commandPrefix`. */
  readonly prefix: readonly string[];
}

/**
 * Opens the cluster in `directory`, making it first when there is none or when its making was interrupted (D2).
 * @param durable false for data that need not survive a power failure
 * @throws EmbeddedPostgresError
 */
export async function openCluster(directory: string, durable: boolean): Promise<Cluster> {
  const binaries = await loadBinaries();
  const dataDir = await locate(directory);
  const content = await orExplain(`cannot read ${dataDir}`, () => contentOf(dataDir));
  if (content === 'foreign') {
    throw new EmbeddedPostgresError(`${dataDir} holds files that are not a PostgreSQL data directory`);
  }
  const account = await accountForRoot(await ownerOf(dataDir));
  const prefix = await commandPrefix(account);
  if (content === 'complete') {
    await requireSameMajor(dataDir, binaries.postgres);
  } else {
    if (content === 'incomplete') await setAside(dataDir);
    await ensurePassword(dataDir);
    await initialiseCluster({ dataDir, initdb: binaries.initdb, prefix, account, durable });
  }
  const owner = await requireOwner(dataDir, account?.uid);
  if (account && owner !== account.uid) await giveTo(account, dataDir);
  return { dataDir, password: await readPassword(dataDir), postgres: binaries.postgres, prefix };
}

/** Makes the parent folder. @throws EmbeddedPostgresError when it cannot be made or written to */
async function locate(directory: string): Promise<string> {
  const wanted = path.resolve(directory);
  const parent = path.dirname(wanted);
  await orExplain(`cannot write to the data folder ${parent}`, async () => {
    await makeFolder(parent);
    await access(parent, constants.W_OK | constants.X_OK);
  });
  return realpath(wanted).catch(async () => path.join(await realpath(parent), path.basename(wanted)));
}

/** Not `mkdir` with `recursive`: below /proc that one never returns (Node 24). */
async function makeFolder(folder: string): Promise<void> {
  if (await isPresent(folder)) return;
  await makeFolder(path.dirname(folder));
  try {
    await mkdir(folder, { mode: 0o700 });
  } catch (error) {
    // Another process that was started at the same time has been faster.
    if (systemCode(error) !== 'EEXIST') throw error;
  }
}

async function isPresent(folder: string): Promise<boolean> {
  try {
    await access(folder);
    return true;
  } catch (error) {
    if (systemCode(error) === 'ENOENT') return false;
    throw error;
  }
}

async function requireSameMajor(dataDir: string, postgres: string): Promise<void> {
  const made = await orExplain(`${dataDir} is damaged`, () => clusterVersionOf(dataDir));
  const runs = await majorVersionOf(postgres);
  if (made === runs) return;
  throw new EmbeddedPostgresError(
    `${dataDir} was made by PostgreSQL ${made}, but the installed version is ${runs}: move it away, or set DATABASE_URL`,
  );
}

/** The uid that owns the data directory. @throws EmbeddedPostgresError when a non-root user owns none of it */
async function requireOwner(dataDir: string, accountUid: number | undefined): Promise<number | undefined> {
  const owner = (await ownerOf(dataDir))?.uid;
  const user = process.getuid?.();
  if (accountUid === undefined && user !== undefined && owner !== user) {
    throw new EmbeddedPostgresError(
      `${dataDir} belongs to user id ${owner}, not to ${user}: start as that user or change its owner`,
    );
  }
  return owner;
}
