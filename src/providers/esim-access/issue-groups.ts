import type { ProviderEsimRef } from '../esim-provider.js';
import type { IssueWindow } from './esim-search.js';

/** eSIMs that one window of time covers. */
export interface IssueGroup {
  readonly refs: readonly ProviderEsimRef[];
  readonly window: IssueWindow;
}

/** A longer pause between two issues starts a new group. */
const LONGEST_PAUSE_MS = 3_600_000;
/** The provider made an eSIM before we issued it, by at most this much in ordinary times. */
const MADE_BEFORE_MS = 600_000;
const CLOCK_SKEW_MS = 120_000;

/** Splits by the pauses in time of issue. One that was made outside its group's window is asked for by itself. */
export function groupByIssueTime(refs: readonly ProviderEsimRef[]): readonly IssueGroup[] {
  const ordered = [...refs].sort((a, b) => a.issuedAt.getTime() - b.issuedAt.getTime());
  const groups: ProviderEsimRef[][] = [];
  let lastMs = -Infinity;
  for (const ref of ordered) {
    const atMs = ref.issuedAt.getTime();
    if (atMs - lastMs > LONGEST_PAUSE_MS) groups.push([]);
    groups.at(-1)!.push(ref);
    lastMs = atMs;
  }
  return groups.map((group) => ({
    refs: group,
    window: {
      fromMs: group[0]!.issuedAt.getTime() - MADE_BEFORE_MS,
      toMs: group.at(-1)!.issuedAt.getTime() + CLOCK_SKEW_MS,
    },
  }));
}
