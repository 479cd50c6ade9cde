import { homedir } from 'node:os';
import path from 'node:path';

export type Environment = Readonly<Record<string, string | undefined>>;

const FOLDER = 'partner-esim';

function folder(environment: Environment, variable: string, fallback: string): string {
  const base = environment[variable];
  // The XDG specification has relative paths ignored.
  const parent =
    base !== undefined && path.isAbsolute(base)
      ? base
      : path.join(environment['HOME'] ?? homedir(), fallback);
  return path.join(parent, FOLDER);
}

/** Keys and the local signing secret. */
export const configFolder = (environment: Environment): string =>
  folder(environment, 'XDG_CONFIG_HOME', '.config');

/** Cursors: how far `listen` has come. */
export const stateFolder = (environment: Environment): string =>
  folder(environment, 'XDG_STATE_HOME', '.local/state');
