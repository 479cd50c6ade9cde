import type { Mode } from '../common/mode.js';
import { prepared, type PreparedStatement } from '../infra/database/index.js';
import type { PurchaseKind } from './purchase.js';

/** SQL expressions of a new row's values in `orders` or `topups`. */
interface NewRow {
  readonly provider: string;
  /** The reference derived from the call, and a fresh one. */
  readonly reference: string;
  readonly otherReference: string;
  /** Set for a top-up. */
  readonly esimId?: string;
}

/**
 * How long after a restore a repeated call can claim its lost purchase: its key's 24 hours, doubled for late callers.
 */
const CLAIMABLE = `interval '48 hours'`;

/** SQL for the reference: derived from the call unless it was used before, here or in purchases that a restore lost. */
function referenceOfNew({ table }: PurchaseKind, { reference, otherReference }: NewRow): string {
  return `CASE WHEN
            EXISTS (SELECT FROM ${table} WHERE provider_reference = ${reference})
            OR EXISTS (SELECT FROM unclaimed_purchases WHERE reference = ${reference} AND found_at < now() - ${CLAIMABLE})
          THEN ${otherReference} ELSE ${reference} END`;
}

/**
 * SQL for the time since which a newly accepted purchase may already be placed; null for never, the usual case. After a
 * restore to an earlier time its provider may already know it: it is then looked up first (D54).
 */
function mayBePlacedSince({ table, name }: PurchaseKind, { provider, reference, esimId }: NewRow): string {
  const ofOldEsim =
    esimId === undefined
      ? ''
      : `AND EXISTS (SELECT FROM esims WHERE id = ${esimId} AND created_at < l.restored_at)`;
  // The last case: accepted by a call that began before writes were refused.
  return `coalesce(
            (SELECT u.sold_at FROM unclaimed_purchases u
             WHERE u.reference = ${reference} AND u.provider = ${provider} AND u.found_at >= now() - ${CLAIMABLE}
               AND NOT EXISTS (SELECT FROM ${table} WHERE provider_reference = ${reference})),
            (SELECT l.since FROM placement_lookups l
             WHERE l.provider = ${provider} AND l.kind = '${name}' AND l.until > now() ${ofOldEsim}),
            (SELECT restored_to FROM restore_epochs WHERE completed_at IS NULL)
          )`;
}

/** SQL expressions of a new row's placement. */
interface Placement {
  readonly reference: string;
  readonly placedSince: string;
}

/**
 * Builds one statement per mode with `insertion`. Sandbox buys nothing and needs no lookups. A shared statement would
 * be planned again at each call, because its Sandbox plans, in which Live's lookups cost nothing, would always look
 * cheaper than a cached plan.
 */
export function insertionByMode(
  kind: PurchaseKind,
  row: NewRow,
  insertion: (placement: Placement) => string,
): Readonly<Record<Mode, PreparedStatement>> {
  const live = { reference: referenceOfNew(kind, row), placedSince: mayBePlacedSince(kind, row) };
  return {
    live: prepared(insertion(live)),
    sandbox: prepared(insertion({ reference: row.reference, placedSince: 'NULL' })),
  };
}
