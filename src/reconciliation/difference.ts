import type { RetentionConfig } from '../config/index.js';
import type { SqlParameter } from '../infra/database/index.js';

/** `warning`: nobody lost anything yet, but a person has to look. */
type Severity = 'error' | 'warning';

/** Ids of what a difference is about, by the name of the thing: `{ order: 'ord_...', partner: 'ptn_...' }`. */
type DifferenceSubject = Readonly<Record<string, string>>;

/** One place where two books do not agree. */
export interface Difference {
  /** The name of the check that found it. */
  readonly check: string;
  readonly severity: Severity;
  /** The rule that is broken, as a sentence. */
  readonly what: string;
  readonly subject: DifferenceSubject;
  readonly expected: string;
  readonly found: string;
  /** What a person does about it. */
  readonly advice: string;
}

/** A kind of difference; its name is what operators search for. */
export type DifferenceKind = Pick<Difference, 'check' | 'severity' | 'what' | 'advice'>;

export interface BookSettings {
  /** What waits longer than this for its provider is listed. */
  readonly needsReviewAfterMs: number;
  /** Older events are no longer there. */
  readonly retention: Pick<RetentionConfig, 'eventDays'>;
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
