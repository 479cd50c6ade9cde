import type { PlacementKind } from './placement-reference.js';

/** SQL expressions of what a new row of `orders` or `topups` holds. */
interface NewRow {
  readonly mode: string;
  readonly provider: string;
  readonly reference: string;
}

/**
 * SQL: since when a purchase that is accepted now may have been placed, null for never, which is nearly always. After
 * the database was put back to an earlier time its provider may know it already: it is looked for first (D54).
 */
export function mayBePlacedSince(kind: PlacementKind, { mode, provider, reference }: NewRow): string {
  return `CASE WHEN ${mode} = 'live' THEN coalesce(
            (SELECT sold_at FROM unclaimed_purchases WHERE reference = ${reference}),
            (SELECT now() FROM placement_lookups WHERE provider = ${provider} AND kind = '${kind}' AND until > now())
          ) END`;
}

/** What the database adds to a new row. */
export interface AcceptedRow {
  readonly created_at: Date;
  readonly next_attempt_at: Date;
  readonly provider_reference: string;
  readonly upstream_placed_at: Date | null;
}

/** The same as the entities have it. */
export function toAccepted(row: AcceptedRow) {
  return {
    createdAt: row.created_at,
    updatedAt: row.created_at,
    nextAttemptAt: row.next_attempt_at,
    providerReference: row.provider_reference,
    upstreamPlacedAt: row.upstream_placed_at,
  };
}
