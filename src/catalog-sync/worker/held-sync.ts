import type { Transactions, Tx } from '../../infra/database/index.js';
import { type CatalogSyncsRepository, SyncOvertaken } from '../catalog-syncs.repository.js';
import type { RunningSync } from '../sync-settings.js';

/** The worker ends; another one makes the synchronisation again. */
export class SyncStopped extends Error {
  constructor() {
    super('this worker is shutting down');
    this.name = 'SyncStopped';
  }
}

/** A lease is renewed so often within its time that one missed renewal does not lose it. */
const RENEWALS_PER_LEASE = 3;

/** A synchronisation that this worker holds: fences what it writes, and keeps its lease while a provider answers. */
export class HeldSync {
  constructor(
    readonly running: RunningSync,
    private readonly syncs: CatalogSyncsRepository,
    private readonly transactions: Transactions,
    /** Aborted when this worker ends. */
    private readonly ending: AbortSignal,
  ) {}

  /** One transaction of this synchronisation. @throws SyncOvertaken when it is not this worker's any more */
  async write<T>(work: (tx: Tx) => Promise<T>): Promise<T> {
    return this.transactions.run(async (tx) => {
      await this.syncs.hold(tx, this.running);
      return work(tx);
    });
  }

  /**
   * Waits for a provider, outside any transaction and for minutes where need be.
   * @throws SyncOvertaken, SyncStopped: the call is then aborted
   */
  async waitFor<T>(call: (signal: AbortSignal) => Promise<T>): Promise<T> {
    const controller = new AbortController();
    const ended = Promise.withResolvers<never>();
    // Nobody may be listening any more when the renewal fails.
    ended.promise.catch(() => undefined);
    const stop = () => ended.reject(new SyncStopped());
    if (this.ending.aborted) throw new SyncStopped();
    this.ending.addEventListener('abort', stop, { once: true });
    const renewal = setInterval(() => {
      this.write(() => Promise.resolve()).catch((error: unknown) => {
        // A database that is away says nothing of the lease: the next write finds out.
        if (error instanceof SyncOvertaken) ended.reject(error);
      });
    }, this.running.leaseMs / RENEWALS_PER_LEASE);
    try {
      return await Promise.race([call(controller.signal), ended.promise]);
    } finally {
      clearInterval(renewal);
      this.ending.removeEventListener('abort', stop);
      controller.abort();
    }
  }
}
