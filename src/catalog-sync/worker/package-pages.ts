import { setTimeout as delay } from 'node:timers/promises';
import {
  callProvider,
  type PackageList,
  type PackagePage,
  ProviderOutcomeUnknown,
  ProviderUnavailable,
  type LiveProvider,
} from '../../providers/index.js';
import type { HeldSync } from './held-sync.js';

/** A page that did not come is asked for again, and not the list. */
const RETRY_AFTER_MS: readonly number[] = [1_000, 2_000];
/** A provider that asks for more patience than this (a key that it does not take) is left alone. */
const MOST_PATIENCE_MS = 10_000;

/**
 * The pages of a list in their order, until `deadlineAt` by `performance.now()`.
 * @throws ProviderOutcomeUnknown, ProviderUnavailable for a page that does not come; SyncOvertaken, SyncStopped
 */
export async function* pagesOf(
  list: PackageList,
  held: HeldSync,
  { liveProvider, deadlineAt }: { readonly liveProvider: LiveProvider; readonly deadlineAt: number },
): AsyncGenerator<PackagePage['packages']> {
  for (let from: number | null = 0; from !== null;) {
    const at: number = from;
    const page = await held.waitFor((signal) => readPage(list, at, { liveProvider, deadlineAt, signal }));
    yield page.packages;
    from = page.next;
  }
}

interface PageCall {
  readonly liveProvider: LiveProvider;
  readonly deadlineAt: number;
  /** Aborted when nobody waits any more. */
  readonly signal: AbortSignal;
}

async function readPage(list: PackageList, from: number, call: PageCall): Promise<PackagePage> {
  for (let attempt = 0; ; attempt++) {
    try {
      const leftMs = call.deadlineAt - performance.now();
      if (leftMs <= 0) throw new ProviderOutcomeUnknown(new Error('the catalogue takes too long'));
      return await callProvider(
        call.liveProvider,
        (limit) => list.readPage(from, AbortSignal.any([limit, call.signal])),
        performance.now(),
        Math.min(leftMs, list.pageTimeoutMs),
      );
    } catch (error) {
      const waitMs = isWorthRepeating(error) ? RETRY_AFTER_MS[attempt] : undefined;
      if (waitMs === undefined || call.signal.aborted) throw error;
      if (performance.now() + waitMs >= call.deadlineAt) throw error;
      await delay(waitMs, undefined, { signal: call.signal });
    }
  }
}

function isWorthRepeating(error: unknown): boolean {
  if (error instanceof ProviderUnavailable) return error.retryAfterMs <= MOST_PATIENCE_MS;
  return error instanceof ProviderOutcomeUnknown;
}
