import { rmSync } from 'node:fs';
import path from 'node:path';
import { configFolder, type Environment } from './paths.js';
import { readPrivateFile, writePrivateFile } from './private-file.js';

export type Mode = 'sandbox' | 'live';

/** What `login` keeps. */
export interface StoredCredentials {
  readonly baseUrl?: string;
  readonly keys: Readonly<Partial<Record<Mode, string>>>;
}

export const credentialsFile = (environment: Environment): string =>
  path.join(configFolder(environment), 'credentials.json');

export function readCredentials(environment: Environment): StoredCredentials {
  const text = readPrivateFile(credentialsFile(environment));
  return text === null ? { keys: {} } : (JSON.parse(text) as StoredCredentials);
}

export function writeCredentials(environment: Environment, credentials: StoredCredentials): void {
  writePrivateFile(credentialsFile(environment), `${JSON.stringify(credentials, null, 2)}\n`);
}

/** Removes every stored key. */
export function removeCredentials(environment: Environment): void {
  rmSync(credentialsFile(environment), { force: true });
}

const KEY_FORM = /^svc_sk_(test|live)_[A-Za-z0-9]{32}$/;

/** The mode that a key works on, or null when this is no key. */
export function modeOfKey(key: string): Mode | null {
  const [, mode] = KEY_FORM.exec(key) ?? [];
  if (mode === undefined) return null;
  return mode === 'live' ? 'live' : 'sandbox';
}
