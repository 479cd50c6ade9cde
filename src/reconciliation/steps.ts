import type { ProviderCost } from '../providers/index.js';
import type { Difference } from './difference.js';

/** A subject that could not be compared, and the reason. */
export interface Unanswered {
  readonly provider: string;
  readonly what: string;
}

/** Result of one step of a part, and the cursor for the next. */
export interface Step {
  /** The last key read; null when nothing is left. */
  readonly cursor: string | null;
  readonly rowsRead: number;
  readonly differences: readonly Difference[];
  readonly unanswered: readonly Unanswered[];
  /** Our balance at the provider; absent when it was not queried. */
  readonly balance?: ProviderCost | null;
}

/** A check over one table, or the comparison with one provider: a walk over keys in independent steps. */
export interface Part {
  /** Name of its cursor. Must not change between releases, because another release may take over a run. */
  readonly name: string;
  /** If set, its rows count as checked rows of this table. */
  readonly counts?: string;
  /** If set, the subject of its queries to a provider. */
  readonly about?: { readonly provider: string; readonly of: 'order' | 'topup' | 'balance' };
  /** Reads and queries without writing. `cursor` is the last key read, or '' at the beginning. */
  step(cursor: string, progress: PartProgress, stopping: AbortSignal): Promise<Step>;
}

/** Progress of a part; `cursor` is null when it is done. */
export interface PartProgress {
  readonly cursor: string | null;
  readonly rowsRead: number;
  readonly differences: number;
}

export const AT_THE_BEGINNING: PartProgress = { cursor: '', rowsRead: 0, differences: 0 };

/** Stores findings and the position from which a run continues. */
export interface Journal {
  progressOf(part: Part): PartProgress;
  /** Stores the step's differences and its cursor together, or neither. */
  record(part: Part, step: Step): Promise<void>;
}

/** Adds a step to a part's progress. */
export function advance(progress: PartProgress, step: Step): PartProgress {
  return {
    cursor: step.cursor,
    rowsRead: progress.rowsRead + step.rowsRead,
    differences: progress.differences + step.differences.length,
  };
}

/**
 * Walks each part to its end from its position in the journal, sequentially. Keeps at most one step in memory.
 * @throws the abort reason of `stopping`; Error of a step or of the journal
 */
export async function walk(parts: readonly Part[], journal: Journal, stopping: AbortSignal): Promise<void> {
  for (const part of parts) {
    for (;;) {
      stopping.throwIfAborted();
      const progress = journal.progressOf(part);
      if (progress.cursor === null) break;
      await journal.record(part, await part.step(progress.cursor, progress, stopping));
    }
  }
}

/** Walks several lists of parts concurrently. When one fails, the others end at their next step, and then it throws. */
export async function walkAtOnce(
  lists: readonly (readonly Part[])[],
  journal: Journal,
  stopping: AbortSignal,
): Promise<void> {
  const failure = new AbortController();
  const either = AbortSignal.any([stopping, failure.signal]);
  await Promise.allSettled(
    lists.map((parts) => walk(parts, journal, either).catch((error: unknown) => failure.abort(error))),
  );
  either.throwIfAborted();
}
