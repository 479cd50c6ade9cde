import type { Mode } from '../common/mode.js';
import { prepared, type PreparedStatement } from '../infra/database/index.js';
import type { PurchaseKind } from './purchase.js';

/** SQL expressions of what a new row of `orders` or `topups` holds. */
interface NewRow {
  readonly provider: string;
  /** The name that follows from the call, and another one. */
  readonly reference: string;
  readonly otherReference: string;
  /** Of a top-up. */
  readonly esimId?: string;
}

/** For so long after a restore a repeated call gets what was bought under it: its key's 24 hours, and as long for who is late. */
const CLAIMABLE = `interval '48 hours'`;

/** SQL: the name follows from the call unless it was used before, here or in what a restore has lost. */
function referenceOfNew({ table }: PurchaseKind, { reference, otherReference }: NewRow): string {
  return `CASE WHEN
            EXISTS (SELECT FROM ${table} WHERE provider_reference = ${reference})
            OR EXISTS (SELECT FROM unclaimed_purchases WHERE reference = ${reference} AND found_at < now() - ${CLAIMABLE})
          THEN ${otherReference} ELSE ${reference} END`;
}

/**
 * SQL: since when a purchase that is accepted now may have been placed, null for never, which is nearly always. After
 * the database was put back to an earlier time its provider may know it already: it is looked for first (D54).
 */
function mayBePlacedSince({ table, name }: PurchaseKind, { provider, reference, esimId }: NewRow): string {
  const ofOldEsim =
    esimId === undefined
      ? ''
      : `AND EXISTS (SELECT FROM esims WHERE id = ${esimId} AND created_at < l.restored_at)`;
  // The last one: accepted by a call that had begun before writes were refused.
  return `coalesce(
            (SELECT u.sold_at FROM unclaimed_purchases u
             WHERE u.reference = ${reference} AND u.provider = ${provider} AND u.found_at >= now() - ${CLAIMABLE}
               AND NOT EXISTS (SELECT FROM ${table} WHERE provider_reference = ${reference})),
            (SELECT l.since FROM placement_lookups l
             WHERE l.provider = ${provider} AND l.kind = '${name}' AND l.until > now() ${ofOldEsim}),
            (SELECT restored_to FROM restore_epochs WHERE completed_at IS NULL)
          )`;
}

/** What a new row says of its purchase, as SQL. */
interface Placement {
  readonly reference: string;
  readonly placedSince: string;
}

/**
 * The statement that `insertion` makes of them, for each mode. Nothing is bought in Sandbox: one statement for both would
 * be planned anew at each call, as what Live looks up costs nothing there.
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
