import type { RetentionConfig } from '../../config/index.js';
import type { SqlParameter } from '../../infra/database/index.js';
import type { DifferenceKind } from '../difference.js';
import type { KeyRange, TableName } from './walked-tables.js';

export interface BookSettings {
  /** What waits longer than this for its provider is listed. */
  readonly needsReviewAfterMs: number;
  /** Older events are no longer there. */
  readonly retention: Pick<RetentionConfig, 'eventDays'>;
}

/**
 * An invariant as one SQL statement about the rows of a table in a range of its keys, hence of one moment: it is right
 * while the service is at work, for every change that it is about is one transaction. It reads other tables by index or
 * in the range of the same time, so it takes as long over a small table as over a large one: LATERAL with OFFSET 0 keeps
 * the planner from reading all of a table for a range of another.
 */
export interface BookWalk {
  readonly table: TableName;
  /**
   * Takes the range (behind $1, up to $2) and then the `parameters`. Answers the rows that break the invariant, with
   * the columns `subject` (jsonb of ids), `expected` and `found`.
   */
  readonly query: string;
  readonly parameters?: (settings: BookSettings, range: KeyRange) => readonly SqlParameter[];
}

/** An invariant of our own books; some need a look from two sides. */
export interface BookCheck extends DifferenceKind {
  readonly walks: readonly BookWalk[];
}

/** A row that breaks an invariant. */
export interface BookBreach {
  readonly subject: Record<string, string>;
  readonly expected: string;
  readonly found: string;
}

/** The `subject` of an order `o` and of a top-up `p`. */
export const ORDER_SUBJECT = `jsonb_build_object('order', o.id, 'partner', o.partner_id) AS subject`;
export const TOPUP_SUBJECT = `jsonb_build_object('topup', p.id, 'esim', p.esim_id, 'partner', p.partner_id) AS subject`;
