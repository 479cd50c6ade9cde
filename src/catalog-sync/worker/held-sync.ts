import { setTimeout as delay } from 'node:timers/promises';
import { untilAborted } from '../../common/time-limit.js';
import type { Transactions, Tx } from '../../infra/database/index.js';
import {
  callProvider,
  type LiveProvider,
  type PackageList,
  type PackagePage,
  ProviderOutcomeUnknown,
  ProviderUnavailable,
} from '../../providers/index.js';
import { type CatalogSyncsRepository, type RunningSync, SyncOvertaken } from '../catalog-syncs.repository.js';

/** The worker is shutting down; another one repeats the synchronization. */
export class SyncStopped extends Error {
  constructor() {
    super('this worker is shutting down');
    this.name = 'SyncStopped';
  }
}

/** A lease is renewed often enough that one missed renewal does not lose it. */
const RENEWALS_PER_LEASE = 3;

/** A synchronization held by this worker: fences its writes, and renews its lease while a provider responds. */
export class HeldSync {
  constructor(
    readonly running: RunningSync,
    private readonly syncs: CatalogSyncsRepository,
    private readonly transactions: Transactions,
    /** Aborted when this worker shuts down. */
    private readonly ending: AbortSignal,
  ) {}

  /** Runs one transaction of this synchronization. @throws SyncOvertaken when another worker has taken over */
  async write<T>(work: (tx: Tx) => Promise<T>): Promise<T> {
    return this.transactions.run(async (tx) => {
      await this.syncs.hold(tx, this.running);
      return work(tx);
    });
  }

  /**
   * Waits for a provider outside any transaction, for minutes if necessary.
   * @throws SyncOvertaken, SyncStopped: the call is then aborted
   */
  async waitFor<T>(call: (signal: AbortSignal) => Promise<T>): Promise<T> {
    if (this.ending.aborted) throw new SyncStopped();
    const controller = new AbortController();
    const stop = () => controller.abort(new SyncStopped());
    this.ending.addEventListener('abort', stop, { once: true });
    const renewal = setInterval(() => {
      this.write(() => Promise.resolve()).catch((error: unknown) => {
        // A database outage does not void the lease. The next write checks it.
        if (error instanceof SyncOvertaken) controller.abort(error);
      });
    }, this.running.leaseMs / RENEWALS_PER_LEASE);
    try {
      return await untilAborted(controller.signal, call);
    } finally {
      clearInterval(renewal);
      this.ending.removeEventListener('abort', stop);
      controller.abort();
    }
  }
}

/** Delays before a page that did not arrive is requested again, without restarting the list. */
const RETRY_AFTER_MS: readonly number[] = [1_000, 2_000];
/** If a provider requests a longer wait than this, for example because it rejects our key, the page is not retried. */
const MAX_WAIT_MS = 10_000;

/**
 * The pages of a list in their order, until `deadlineAt` by `performance.now()`.
 * @throws ProviderOutcomeUnknown, ProviderUnavailable for a page that does not arrive; SyncOvertaken, SyncStopped
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
  /** Aborted when the caller no longer waits. */
  readonly signal: AbortSignal;
}

async function readPage(list: PackageList, from: number, call: PageCall): Promise<PackagePage> {
  for (let attempt = 0; ; attempt++) {
    try {
      const leftMs = call.deadlineAt - performance.now();
      if (leftMs <= 0) throw new ProviderOutcomeUnknown(new Error('the catalog synchronization timed out'));
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
  if (error instanceof ProviderUnavailable) return error.retryAfterMs <= MAX_WAIT_MS;
  return error instanceof ProviderOutcomeUnknown;
}
