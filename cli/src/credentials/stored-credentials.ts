import { rmSync } from 'node:fs';
import { CliError, EXIT } from '../exit-codes.js';
import { configFolder, type Environment, fileIn } from './paths.js';
import { readPrivateFile, writePrivateFile } from './private-file.js';

export type Mode = 'sandbox' | 'live';

/** A key and the only address that it may be sent to, which is the one that accepted it at login. */
export interface StoredKey {
  readonly key: string;
  /** Null if an earlier version stored the key without the address used at login. */
  readonly baseUrl: string | null;
}

/** The credentials that `login` stores. */
export type StoredCredentials = Readonly<Partial<Record<Mode, StoredKey>>>;

/** An earlier format that stored one address for both keys, taken from the last login. */
interface EarlierCredentials {
  readonly baseUrl?: string;
  readonly keys: Readonly<Partial<Record<Mode, string>>>;
}

/** @throws CliError for a user without a home folder */
export const credentialsFile = (environment: Environment): string =>
  fileIn(configFolder(environment), 'credentials.json');

/**
 * @returns the stored keys; empty for a user without a home folder
 * @throws CliError when the file is not JSON
 */
export function readCredentials(environment: Environment): StoredCredentials {
  if (configFolder(environment) === null) return {};
  const file = credentialsFile(environment);
  const text = readPrivateFile(file);
  if (text === null) return {};
  const kept = parse(text, file);
  return 'keys' in kept ? fromEarlier(kept) : kept;
}

function parse(text: string, file: string): StoredCredentials | EarlierCredentials {
  try {
    return JSON.parse(text) as StoredCredentials | EarlierCredentials;
  } catch {
    throw new CliError(EXIT.unauthorized, `${file} is not JSON`, 'Run `esim logout`, then `esim login`.');
  }
}

/** A single key owns the address. With two keys, it is unknown which of them was accepted there. */
function fromEarlier({
  keys,
  baseUrl = null,
}: {
  keys: EarlierCredentials['keys'];
  baseUrl?: string | null;
}): StoredCredentials {
  const { sandbox, live } = keys;
  const place = sandbox !== undefined && live !== undefined ? null : baseUrl;
  return {
    ...(sandbox === undefined ? {} : { sandbox: { key: sandbox, baseUrl: place } }),
    ...(live === undefined ? {} : { live: { key: live, baseUrl: place } }),
  };
}

export function writeCredentials(environment: Environment, credentials: StoredCredentials): void {
  writePrivateFile(credentialsFile(environment), `${JSON.stringify(credentials, null, 2)}\n`);
}

/**
 * Removes every stored key.
 * @returns the path of the credentials file; null for a user without a home folder
 */
export function removeCredentials(environment: Environment): string | null {
  if (configFolder(environment) === null) return null;
  const file = credentialsFile(environment);
  if (readPrivateFile(file) !== null) rmSync(file);
  return file;
}

const KEY_FORM = /^svc_sk_(test|live)_[A-Za-z0-9]{32}$/;

/** @returns the key's mode, or null if the text is not a key */
export function modeOfKey(key: string): Mode | null {
  const [, mode] = KEY_FORM.exec(key) ?? [];
  if (mode === undefined) return null;
  return mode === 'live' ? 'live' : 'sandbox';
}
