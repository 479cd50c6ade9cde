import type { ProviderCost } from '../providers/index.js';
import type { Difference } from './difference.js';

/** What could not be compared, and why. */
export interface Unanswered {
  readonly provider: string;
  readonly what: string;
}

/** What one step of a part read, and where the next one goes on. */
export interface Step {
  /** The last key that was read; null: nothing is left. */
  readonly cursor: string | null;
  readonly rowsRead: number;
  readonly differences: readonly Difference[];
  readonly unanswered: readonly Unanswered[];
  /** What a provider says that we have left; absent when it was not asked. */
  readonly balance?: ProviderCost | null;
}

/** A check over one table, or the comparison with one provider: a walk over keys, in steps that stand alone. */
export interface Part {
  /** Names its cursor, for as long as a run may be taken over by another release. */
  readonly name: string;
  /** Set: the rows it reads are what was checked of this table. */
  readonly counts?: string;
  /** Set: what it asks of a provider. */
  readonly about?: { readonly provider: string; readonly of: 'order' | 'topup' | 'balance' };
  /** Reads and asks, and writes nothing. `cursor` is the last key that was read, or '' at the beginning. */
  step(cursor: string, progress: PartProgress, stopping: AbortSignal): Promise<Step>;
}

/** How far a part has come; `cursor` null: it is done. */
export interface PartProgress {
  readonly cursor: string | null;
  readonly rowsRead: number;
  readonly differences: number;
}

export const AT_THE_BEGINNING: PartProgress = { cursor: '', rowsRead: 0, differences: 0 };

/** Where what is found goes, and from where a run goes on. */
export interface Journal {
  progressOf(part: Part): PartProgress;
  /** Keeps the step's differences and its cursor together, or neither. */
  record(part: Part, step: Step): Promise<void>;
}

/** Adds a step to what a part has come to. */
export function advance(progress: PartProgress, step: Step): PartProgress {
  return {
    cursor: step.cursor,
    rowsRead: progress.rowsRead + step.rowsRead,
    differences: progress.differences + step.differences.length,
  };
}

/**
 * Walks each part to its end from where the journal has it, one after the other. Keeps no more than a step in memory.
 * @throws whatever `stopping` was aborted with; Error of a step or of the journal
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

/** Walks several lists of parts at once. When one fails, the others end at their next step, and then it throws. */
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
