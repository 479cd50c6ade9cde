import type { SqlParameter } from '../../infra/database/index.js';
import type { DifferenceKind } from '../difference.js';

export interface BookSettings {
  /** What waits longer than this for its provider is listed. */
  readonly needsReviewAfterMs: number;
}

/**
 * An invariant of our own books as one SQL statement, hence of one moment: it is right while the service is at work,
 * for every change that it is about is one transaction. The statement answers the rows that break it, with the columns
 * `subject` (jsonb of ids), `expected` and `found`.
 */
export interface BookCheck extends DifferenceKind {
  readonly query: string;
  readonly parameters?: (settings: BookSettings) => readonly SqlParameter[];
}

/** A row that breaks an invariant. */
export interface BookBreach {
  readonly subject: Record<string, string>;
  readonly expected: string;
  readonly found: string;
}
