/** `warning`: no loss yet, but a person must check. */
type Severity = 'error' | 'warning';

/** Ids of a difference's subject by name: `{ order: 'ord_...', partner: 'ptn_...' }`. */
type DifferenceSubject = Readonly<Record<string, string>>;

/** A place where two books disagree. */
export interface Difference {
  /** Name of the check that found it. */
  readonly check: string;
  readonly severity: Severity;
  /** The violated rule as a sentence. */
  readonly what: string;
  readonly subject: DifferenceSubject;
  readonly expected: string;
  readonly found: string;
  /** How a person resolves it. */
  readonly advice: string;
}

/** A kind of difference; operators search for its name. */
export type DifferenceKind = Pick<Difference, 'check' | 'severity' | 'what' | 'advice'>;
