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
