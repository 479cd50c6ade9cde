import { createHash } from 'node:crypto';
import type { EnvReader } from './env-reader.js';

/** One admin token of `ADMIN_TOKENS`; only its digest is kept (D3). */
export interface AdminToken {
  readonly name: string;
  readonly sha256: Buffer;
}

/** One key of the ring `SECRETS_KEYS`; the first encrypts, all decrypt (D37). */
export interface SecretKey {
  readonly id: string;
  readonly key: Buffer;
}

const MIN_TOKEN_LENGTH = 32;
const AES_256_KEY_BYTES = 32;

export function parseAdminTokens(read: EnvReader): readonly AdminToken[] {
  return parseNamed(read, 'ADMIN_TOKENS', (name, token) => {
    if (token.length < MIN_TOKEN_LENGTH)
      return `the token "${name}" must have at least ${MIN_TOKEN_LENGTH} characters`;
    if (!/^[\x21-\x7e]+$/.test(token)) return `the token "${name}" must be printable ASCII without spaces`;
    return { name, sha256: createHash('sha256').update(token).digest() };
  });
}

export function parseSecretKeys(read: EnvReader): readonly SecretKey[] {
  return parseNamed(read, 'SECRETS_KEYS', (id, text) => {
    const key = Buffer.from(text, 'base64');
    return key.length === AES_256_KEY_BYTES
      ? { id, key }
      : `the key "${id}" must be ${AES_256_KEY_BYTES} bytes in base64`;
  });
}

function parseNamed<T extends object>(
  read: EnvReader,
  variable: string,
  parse: (name: string, value: string) => T | string,
): readonly T[] {
  const text = read.text(variable);
  if (text === undefined) {
    read.problems.push(`${variable} is required, as name:value[,name:value]`);
    return [];
  }
  const items: T[] = [];
  const names = new Set<string>();
  for (const part of text.split(',')) {
    const separator = part.indexOf(':');
    const name = part.slice(0, separator).trim();
    if (separator < 1 || !/^[A-Za-z0-9_-]{1,32}$/.test(name) || names.has(name)) {
      read.problems.push(`${variable} must be name:value[,name:value] with different names`);
      return [];
    }
    names.add(name);
    const item = parse(name, part.slice(separator + 1).trim());
    if (typeof item === 'string') read.problems.push(`${variable}: ${item}`);
    else items.push(item);
  }
  return items;
}
