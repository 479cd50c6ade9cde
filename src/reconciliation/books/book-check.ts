import type { RetentionConfig } from '../../config/index.js';
import type { SqlParameter } from '../../infra/database/index.js';
import type { DifferenceKind } from '../difference.js';
import type { KeyRange, TableName } from './walked-tables.js';

export interface BookSettings {
  /** Orders and top-ups that wait longer than this for their provider are listed. */
  readonly needsReviewAfterMs: number;
  /** Older events no longer exist. */
  readonly retention: Pick<RetentionConfig, 'eventDays'>;
}

/**
 * An invariant as one SQL statement over a range of a table's keys, and therefore over one snapshot. It holds while the
 * service is running, because each relevant change is one transaction. It reads other tables by index or within the
 * same time range, so its duration does not depend on table size: LATERAL with OFFSET 0 keeps the planner from scanning
 * one table for a range of another.
 */
export interface BookWalk {
  readonly table: TableName;
  /**
   * Parameters: the range (after $1, up to $2), then the `parameters`. Returns the rows that violate the invariant,
   * with the columns `subject` (jsonb of ids), `expected` and `found`.
   */
  readonly query: string;
  readonly parameters?: (settings: BookSettings, range: KeyRange) => readonly SqlParameter[];
}

/** An invariant of our own books; some need walks over two tables. */
export interface BookCheck extends DifferenceKind {
  readonly walks: readonly BookWalk[];
}

/** A row that violates an invariant. */
export interface BookBreach {
  readonly subject: Record<string, string>;
  readonly expected: string;
  readonly found: string;
}

/** The `subject` of an order `o` and of a top-up `p`. */
export const ORDER_SUBJECT = `jsonb_build_object('order', o.id, 'partner', o.partner_id) AS subject`;
export const TOPUP_SUBJECT = `jsonb_build_object('topup', p.id, 'esim', p.esim_id, 'partner', p.partner_id) AS subject`;
