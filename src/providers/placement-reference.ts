import { createHash } from 'node:crypto';
import type { Mode } from '../common/mode.js';
import { toBase32, ulid } from '../common/ids.js';

/** What is bought under a reference. */
export type PlacementKind = 'order' | 'topup';

const PREFIXES: Readonly<Record<PlacementKind, string>> = { order: 'po', topup: 'pt' };
/** 80 bits: among the orders of one partner no two meet. With it a reference has 46 characters, of 50 that a provider takes. */
const DIGEST_BYTES = 10;
const DERIVED = /^(po|pt)_([0-9A-HJKMNP-TV-Z]{26})_[0-9A-HJKMNP-TV-Z]{16}$/;
const PARTNER_PREFIX = 'ptn_';

/** A POST of a partner, as far as it says what is bought. */
export interface PlacementIntent {
  readonly partnerId: string;
  readonly mode: Mode;
  /** Null where none was sent. */
  readonly idempotencyKey: string | null;
  /** What is bought, such as package and quantity: another purchase under a key that was used before has a name of its own. */
  readonly bought: readonly (string | number)[];
}

/**
 * The name that a provider knows a purchase by (D19). In Live it follows from the partner and the Idempotency-Key: a
 * database that was put back to an earlier time gives the repetition of a lost POST the name that the purchase was made
 * under, so that it is found and not bought again (D54). The partner stands in it, so that a purchase that nobody
 * repeats can be brought home.
 */
export function placementReference(kind: PlacementKind, intent: PlacementIntent): string {
  const { partnerId, mode, idempotencyKey, bought } = intent;
  if (mode === 'sandbox' || idempotencyKey === null || !partnerId.startsWith(PARTNER_PREFIX))
    return freshReference(kind);
  const name = JSON.stringify([kind, partnerId, idempotencyKey, ...bought]);
  const digest = createHash('sha256').update(name).digest().subarray(0, DIGEST_BYTES);
  return `${PREFIXES[kind]}_${partnerId.slice(PARTNER_PREFIX.length)}_${toBase32(digest)}`;
}

/** A name that nothing was bought under: of Sandbox, and of a key that is used again after its 24 hours. */
export function freshReference(kind: PlacementKind): string {
  return `${PREFIXES[kind]}_${ulid()}`;
}

/** Whether a provider's text is a name of ours, and what it tells; the partner is null where it tells none. */
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
