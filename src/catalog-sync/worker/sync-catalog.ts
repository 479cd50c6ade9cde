import { Inject, Injectable } from '@nestjs/common';
import type { Logger } from 'pino';
import { CatalogChangesRepository } from '../../catalog/index.js';
import { APP_CONFIG, type AppConfig } from '../../config/index.js';
import { Transactions } from '../../infra/database/index.js';
import { LOGGER } from '../../infra/logging.js';
import { ProviderHealthRepository, ProviderRegistry, type LiveProvider } from '../../providers/index.js';
import type { SyncError, SyncOutcome, WrittenOutcome } from '../catalog-sync.entity.js';
import {
  CatalogSyncsRepository,
  digestOf,
  type RunningSync,
  SyncOvertaken,
} from '../catalog-syncs.repository.js';
import { isSoldBy, type SalesTerms } from '../live-packages.js';
import { LiveCatalogRepository } from '../live-catalog.repository.js';
import { HeldSync, pagesOf, SyncStopped } from './held-sync.js';
import { CatalogShrank, ListIncomplete, type ListToStore, StoreList } from './store-list.js';

/** Added to a call's time limit: a dead worker's synchronization is taken over after both. */
const LEASE_MARGIN_MS = 30_000;

/**
 * Copies the providers' packages into the live catalog (D16). Each page of a list is read outside any transaction and
 * stored in one. A provider that fails keeps its packages, as far as the rules permit, and the part of its list that
 * arrived. A provider that is not connected to this process sells nothing.
 */
@Injectable()
export class SyncCatalog {
  private readonly sinceMs = performance.now();
  private readonly terms: SalesTerms;
  private readonly ending = new AbortController();

  constructor(
    @Inject(APP_CONFIG) private readonly config: AppConfig,
    @Inject(LOGGER) private readonly logger: Logger,
    private readonly providers: ProviderRegistry,
    private readonly health: ProviderHealthRepository,
    private readonly syncs: CatalogSyncsRepository,
    private readonly catalog: LiveCatalogRepository,
    private readonly changes: CatalogChangesRepository,
    private readonly lists: StoreList,
    private readonly transactions: Transactions,
  ) {
    const { liveMarginBps: marginBps, livePackageRules: rules } = config.provisioning;
    this.terms = { marginBps, rules };
  }

  /** Runs a requested or due synchronization; returns whether there was one. */
  async runIfDue(): Promise<boolean> {
    if (this.providers.liveProviders.length === 0 || this.ending.signal.aborted) return false;
    const running = await this.begin();
    if (running === null) return false;
    const held = new HeldSync(running, this.syncs, this.transactions, this.ending.signal);
    try {
      const outcomes = await this.run(held);
      this.logger.info({ event: 'catalog.synced', syncId: running.id, outcomes });
    } catch (error) {
      if (error instanceof SyncStopped) await this.transactions.run((tx) => this.syncs.release(tx, running));
      else if (!(error instanceof SyncOvertaken)) throw error;
      this.logger.warn({ event: 'catalog.sync_left', syncId: running.id, why: error.name });
    }
    return true;
  }

  /** Aborts the current synchronization at once: the next worker repeats it. */
  stop(): void {
    this.ending.abort();
  }

  private async begin(): Promise<RunningSync | null> {
    const { catalogSyncIntervalMs } = this.config.provisioning;
    const { liveProviders } = this.providers;
    const settings = {
      digest: digestOf(
        this.terms,
        liveProviders.map(({ name }) => name),
      ),
      ageMs: performance.now() - this.sinceMs,
      leaseMs: Math.max(...liveProviders.map(({ timeoutMs }) => timeoutMs)) + LEASE_MARGIN_MS,
    };
    return this.transactions.run(async (tx) => {
      const running = await this.syncs.begin(tx, catalogSyncIntervalMs, settings);
      if (running) await this.syncs.noteChangesAfter(tx, running.id, await this.changes.getEnds(tx, 'live'));
      return running;
    });
  }

  private async run(held: HeldSync): Promise<Record<string, SyncOutcome>> {
    const outcomes = await this.withdrawUnconnected(held);
    // In parallel: a slow provider must not delay the packages of another.
    const ends = await Promise.allSettled(
      this.providers.liveProviders.map(async (liveProvider) => {
        outcomes[liveProvider.name] = await this.sync(held, liveProvider);
      }),
    );
    for (const end of ends) if (end.status === 'rejected') throw end.reason;
    await held.write(async (tx) => {
      const { position } = await this.changes.getEnds(tx, 'live');
      await this.syncs.end(tx, held.running.id, outcomes, position);
    });
    return outcomes;
  }

  /**
   * Withdraws packages whose orders would be refused. They are sold again with the list of a provider that has
   * returned.
   */
  private async withdrawUnconnected(held: HeldSync): Promise<Record<string, SyncOutcome>> {
    const counts = await held.write((tx) => this.catalog.withdrawUnconnected(tx, this.providers.names));
    return Object.fromEntries(
      [...counts].map(([provider, withdrawn]) => [provider, { listed: 0, changed: 0, withdrawn }]),
    );
  }

  private async sync(held: HeldSync, liveProvider: LiveProvider): Promise<SyncOutcome> {
    try {
      const withdrawn = await this.withdrawForbidden(held, liveProvider.name);
      const outcome = await this.storeLists(held, liveProvider);
      this.health.recordSync(liveProvider.name);
      return { ...outcome, withdrawn: outcome.withdrawn + withdrawn };
    } catch (error) {
      if (error instanceof SyncOvertaken || error instanceof SyncStopped) throw error;
      this.logger.warn({ event: 'catalog.sync_failed', provider: liveProvider.name, err: error });
      if (error instanceof ListIncomplete) return { ...error.stored, error: 'catalog_incomplete' };
      return { error: error instanceof CatalogShrank ? 'catalog_shrank' : 'provider_unavailable' };
    }
  }

  private async storeLists(
    held: HeldSync,
    liveProvider: LiveProvider,
  ): Promise<WrittenOutcome & { warning?: SyncError }> {
    const deadlineAt = performance.now() + liveProvider.catalogTimeoutMs;
    let outcome: WrittenOutcome & { warning?: SyncError } = { listed: 0, changed: 0, withdrawn: 0 };
    for (const list of liveProvider.listPackages()) {
      const pages = pagesOf(list, held, { liveProvider, deadlineAt });
      const work = { liveProvider, list, pages, terms: this.terms };
      if (list.says === 'everything') outcome = sumOf(outcome, await this.lists.everything(held, work));
      else outcome = { ...outcome, ...(await this.storePrices(held, work)) };
    }
    return outcome;
  }

  /** Failures are not retried, because these lists may fail forever. */
  private async storePrices(held: HeldSync, work: ListToStore): Promise<{ warning?: SyncError }> {
    try {
      await this.lists.prices(held, work);
      return {};
    } catch (error) {
      if (error instanceof SyncOvertaken || error instanceof SyncStopped) throw error;
      const provider = work.liveProvider.name;
      this.logger.warn({ event: 'catalog.topup_prices_failed', provider, err: error });
      return { warning: 'topup_prices_unavailable' };
    }
  }

  /**
   * Applies the rules without a list: operators replace a provider precisely when it does not respond. The list is then
   * compared with the permitted packages, so that a change of rules does not look like a shrunken list.
   */
  private async withdrawForbidden(held: HeldSync, provider: string): Promise<number> {
    return held.write(async (tx) => {
      const sold = await this.catalog.listAvailable(tx, provider);
      const forbidden = sold.filter((item) => !isSoldBy(this.terms.rules, provider, item));
      const ids = forbidden.map(({ id }) => id);
      return ids.length === 0 ? 0 : this.catalog.withdraw(tx, provider, ids);
    });
  }
}

function sumOf(a: WrittenOutcome, b: WrittenOutcome): WrittenOutcome {
  return {
    listed: a.listed + b.listed,
    changed: a.changed + b.changed,
    withdrawn: a.withdrawn + b.withdrawn,
  };
}
