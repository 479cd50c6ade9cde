import { createHash } from 'node:crypto';
import { ADMIN_SCOPES, type AdminScope } from '../common/scopes.js';
import type { EnvReader } from './env-reader.js';

/** One admin token of `ADMIN_TOKENS`; only its digest is kept (D3). */
export interface AdminToken {
  readonly name: string;
  readonly sha256: Buffer;
  /** Its own scopes, and the maximum scopes of portal sessions that it creates (D50). */
  readonly scopes: readonly AdminScope[];
}

/** One key of the ring `SECRETS_KEYS`; the first encrypts, all decrypt (D37). */
export interface SecretKey {
  readonly id: string;
  readonly key: Buffer;
}

const MIN_TOKEN_LENGTH = 32;
/** A token given as its digest, for a role that needs the token's name and scopes but must not be able to use it. */
const TOKEN_DIGEST = /^sha256=([0-9a-f]{64})$/;
const AES_256_KEY_BYTES = 32;

/** Reads `ADMIN_TOKENS` and `ADMIN_TOKEN_SCOPES`; roles that check no admin token may omit them. */
export function parseAdminTokens(
  read: EnvReader,
  { required }: { readonly required: boolean },
): readonly AdminToken[] {
  if (!required && read.text('ADMIN_TOKENS') === undefined) return [];
  const narrowed = parseTokenScopes(read);
  const tokens = parseNamed(read, 'ADMIN_TOKENS', (name, token) => {
    const scopes = narrowed.get(name) ?? ADMIN_SCOPES;
    const digest = TOKEN_DIGEST.exec(token)?.[1];
    if (digest !== undefined) return { name, sha256: Buffer.from(digest, 'hex'), scopes };
    if (token.startsWith('sha256=')) return `the digest of "${name}" must be 64 hexadecimal characters`;
    if (token.length < MIN_TOKEN_LENGTH)
      return `the token "${name}" must have at least ${MIN_TOKEN_LENGTH} characters`;
    if (!/^[\x21-\x7e]+$/.test(token)) return `the token "${name}" must be printable ASCII without spaces`;
    return { name, sha256: createHash('sha256').update(token).digest(), scopes };
  });
  const unknown = [...narrowed.keys()].filter((name) => !tokens.some((token) => token.name === name));
  if (unknown.length > 0)
    read.problems.push(`ADMIN_TOKEN_SCOPES names tokens that are not in ADMIN_TOKENS: ${unknown.join(', ')}`);
  return tokens;
}

/** `ADMIN_TOKEN_SCOPES=support=orders:read+requests:read,audit=`: a token that it does not name holds every scope. */
function parseTokenScopes(read: EnvReader): Map<string, readonly AdminScope[]> {
  const scopes = new Map<string, readonly AdminScope[]>();
  for (const part of (read.text('ADMIN_TOKEN_SCOPES') ?? '')
    .split(',')
    .filter((text) => text.trim() !== '')) {
    const [name = '', list, ...more] = part.split('=').map((text) => text.trim());
    const wanted = (list ?? '').split('+').filter((text) => text !== '');
    const known = ADMIN_SCOPES.filter((scope) => wanted.includes(scope));
    if (name === '' || list === undefined || more.length > 0 || known.length !== wanted.length)
      read.problems.push(`ADMIN_TOKEN_SCOPES must be name=scope[+scope], of ${ADMIN_SCOPES.join(', ')}`);
    else scopes.set(name, known);
  }
  return scopes;
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
