import type { RecordedAttempt } from './outcomes.repository.js';

/** What a batch of attempts means for its endpoints, to be applied in this order. */
export interface EndpointVerdicts {
  /** A 2xx ended before any delivery was given up. */
  readonly resetFirst: readonly string[];
  /** A delivery was given up: the first one may block, those after it meet a blocked endpoint (D31). */
  readonly exhausted: readonly string[];
  /** A 2xx ended after a delivery was given up. */
  readonly resetLast: readonly string[];
}

/** Tests have no effect on the count; ids come out sorted, for the lock order (D31, D40). */
export function verdictsOf(recorded: readonly RecordedAttempt[]): EndpointVerdicts {
  const resetFirst = new Set<string>();
  const exhausted = new Set<string>();
  const resetLast = new Set<string>();
  const inOrder = recorded.filter(({ kind }) => kind !== 'test').toSorted((a, b) => +a.endedAt - +b.endedAt);
  for (const attempt of inOrder) {
    const { endpointId } = attempt;
    if (attempt.exhausted) exhausted.add(endpointId);
    else if (attempt.outcome === 'delivered')
      (exhausted.has(endpointId) ? resetLast : resetFirst).add(endpointId);
  }
  return {
    resetFirst: [...resetFirst].sort(),
    exhausted: [...exhausted].sort(),
    resetLast: [...resetLast].sort(),
  };
}
