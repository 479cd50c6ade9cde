import { homedir } from 'node:os';
import path from 'node:path';
import { CliError, EXIT } from '../exit-codes.js';

export type Environment = Readonly<Record<string, string | undefined>>;

/** Trims a variable, for example the line break of a file. @returns undefined if it is unset or blank */
export function variableOf(environment: Environment, name: string): string | undefined {
  return environment[name]?.trim() || undefined;
}

const FOLDER = 'partner-esim';

/** @returns null for a user without a home folder, for example in a container */
function homeOf(environment: Environment): string | null {
  if (environment['HOME']) return environment['HOME'];
  try {
    return homedir();
  } catch {
    return null;
  }
}

function folder(environment: Environment, variable: string, fallback: string): string | null {
  const base = environment[variable];
  // The XDG specification says to ignore relative paths.
  if (base !== undefined && path.isAbsolute(base)) return path.join(base, FOLDER);
  const home = homeOf(environment);
  return home === null ? null : path.join(home, fallback, FOLDER);
}

/** Folder for keys and the local signing secret; null without a home folder. */
export const configFolder = (environment: Environment): string | null =>
  folder(environment, 'XDG_CONFIG_HOME', '.config');

/** Folder for the cursors of `listen`; null without a home folder. */
export const stateFolder = (environment: Environment): string | null =>
  folder(environment, 'XDG_STATE_HOME', '.local/state');

/** @throws CliError when the folder is null */
export function fileIn(folderFound: string | null, name: string): string {
  if (folderFound !== null) return path.join(folderFound, name);
  throw new CliError(
    EXIT.failed,
    'this user has no home folder to store the file of this command in',
    'Set HOME to a folder that this user can write to. Commands that only call the API need none if ESIM_API_KEY is set.',
  );
}
