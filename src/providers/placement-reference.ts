import { createHash } from 'node:crypto';
import type { Mode } from '../common/mode.js';
import { toBase32, ulid } from '../common/ids.js';

/** Kind of purchase under a reference. */
export type PlacementKind = 'order' | 'topup';

const PREFIXES: Readonly<Record<PlacementKind, string>> = { order: 'po', topup: 'pt' };
/** 80 bits: no two orders of one partner collide. The reference then has 46 characters; providers accept 50. */
const DIGEST_BYTES = 10;
const DERIVED = /^(po|pt)_([0-9A-HJKMNP-TV-Z]{26})_[0-9A-HJKMNP-TV-Z]{16}$/;
const PARTNER_PREFIX = 'ptn_';

/** The parts of a partner's POST that identify the purchase. */
export interface PlacementIntent {
  readonly partnerId: string;
  readonly mode: Mode;
  /** Null when the request had none. */
  readonly idempotencyKey: string | null;
  /** The purchase, such as package and quantity: another purchase under a reused key gets its own reference. */
  readonly bought: readonly (string | number)[];
}

/**
 * The reference under which a provider knows a purchase (D19). In Live it is derived from the partner and the
 * Idempotency-Key. After the database is restored to an earlier time, a repeated POST therefore gets the reference of
 * the original purchase: we find that purchase instead of buying again (D54). The reference contains the partner, so
 * that a purchase can be assigned to it even if the POST is never repeated.
 */
export function placementReference(kind: PlacementKind, intent: PlacementIntent): string {
  const { partnerId, mode, idempotencyKey, bought } = intent;
  if (mode === 'sandbox' || idempotencyKey === null || !partnerId.startsWith(PARTNER_PREFIX))
    return freshReference(kind);
  const name = JSON.stringify([kind, partnerId, idempotencyKey, ...bought]);
  const digest = createHash('sha256').update(name).digest().subarray(0, DIGEST_BYTES);
  return `${PREFIXES[kind]}_${partnerId.slice(PARTNER_PREFIX.length)}_${toBase32(digest)}`;
}

/** A reference that was never used: for Sandbox, and for a key that is reused after its 24 hours. */
export function freshReference(kind: PlacementKind): string {
  return `${PREFIXES[kind]}_${ulid()}`;
}

/** Parses a provider's text as one of our references; the partner is null when the reference does not contain one. */
export function readPlacementReference(
  text: string,
): { readonly kind: PlacementKind; readonly partnerId: string | null } | null {
  const [, prefix, partner] = DERIVED.exec(text) ?? /^(po|pt)_[0-9A-HJKMNP-TV-Z]{26}$/.exec(text) ?? [];
  if (prefix === undefined) return null;
  return {
    kind: prefix === PREFIXES.order ? 'order' : 'topup',
    partnerId: partner === undefined ? null : PARTNER_PREFIX + partner,
  };
}
