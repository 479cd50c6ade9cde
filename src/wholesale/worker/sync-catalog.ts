import { Inject, Injectable } from '@nestjs/common';
import type { Logger } from 'pino';
import { APP_CONFIG, type AppConfig } from '../../config/index.js';
import { Transactions, type Tx } from '../../infra/database/index.js';
import { LOGGER } from '../../infra/logging/index.js';
import {
  callProvider,
  ProviderHealthRepository,
  ProviderRegistry,
  type Wholesaler,
} from '../../providers/index.js';
import type { SyncOutcome, WrittenOutcome } from '../catalog-sync.entity.js';
import { CatalogSyncsRepository, SyncOvertaken } from '../catalog-syncs.repository.js';
import { type LivePackage, type SalesTerms, toLivePackage } from '../live-packages.js';
import { LiveCatalogRepository } from '../live-catalog.repository.js';
import { isSoldBy } from '../package-rules.js';
import { digestOf, type RunningSync } from '../sync-settings.js';

/** A list that lost more than half of what is sold is a fault of the wholesaler's, not a decision of its. */
const SMALLEST_SHARE = 0.5;
/** A dozen packages may well go at once. */
const ALWAYS_BELIEVED = 12;
/** On top of the one call between two transactions: what the transactions themselves may take. */
const LEASE_MARGIN_MS = 30_000;

/**
 * Brings the wholesalers' packages into the live catalogue (D16): one call outside any transaction, then
 * one transaction for each wholesaler. A wholesaler that fails keeps what it had, as far as the rules let it sell that;
 * one that is not connected to this process sells nothing.
 */
@Injectable()
export class SyncCatalog {
  private readonly sinceMs = performance.now();
  private readonly terms: SalesTerms;

  constructor(
    @Inject(APP_CONFIG) private readonly config: AppConfig,
    @Inject(LOGGER) private readonly logger: Logger,
    private readonly providers: ProviderRegistry,
    private readonly health: ProviderHealthRepository,
    private readonly syncs: CatalogSyncsRepository,
    private readonly catalog: LiveCatalogRepository,
    private readonly transactions: Transactions,
  ) {
    const { liveMarginBps: marginBps, livePackageRules: rules } = config.provisioning;
    this.terms = { marginBps, rules };
  }

  /** Does what is asked for or due; answers whether there was something. */
  async runIfDue(): Promise<boolean> {
    if (this.providers.wholesalers.length === 0) return false;
    const running = await this.begin();
    if (running === null) return false;
    try {
      const outcomes = await this.run(running);
      this.logger.info({ event: 'catalog.synced', syncId: running.id, outcomes });
    } catch (error) {
      if (!(error instanceof SyncOvertaken)) throw error;
      this.logger.warn({ event: 'catalog.sync_overtaken', syncId: running.id });
    }
    return true;
  }

  private async begin(): Promise<RunningSync | null> {
    const { catalogSyncIntervalMs } = this.config.provisioning;
    const { wholesalers } = this.providers;
    const settings = {
      digest: digestOf(
        this.terms,
        wholesalers.map(({ name }) => name),
      ),
      ageMs: performance.now() - this.sinceMs,
      leaseMs: Math.max(...wholesalers.map(({ timeoutMs }) => timeoutMs)) + LEASE_MARGIN_MS,
    };
    return this.transactions.run((tx) => this.syncs.begin(tx, catalogSyncIntervalMs, settings));
  }

  private async run(running: RunningSync): Promise<Record<string, SyncOutcome>> {
    const outcomes = await this.withdrawUnconnected(running);
    for (const wholesaler of this.providers.wholesalers)
      outcomes[wholesaler.name] = await this.sync(running, wholesaler);
    await this.inSync(running, (tx) => this.syncs.end(tx, running.id, outcomes));
    return outcomes;
  }

  /** Orders of these packages would be refused. They are sold again with the list of a wholesaler that is back. */
  private async withdrawUnconnected(running: RunningSync): Promise<Record<string, SyncOutcome>> {
    const counts = await this.inSync(running, (tx) =>
      this.catalog.withdrawUnconnected(tx, this.providers.names),
    );
    return Object.fromEntries(
      [...counts].map(([provider, withdrawn]) => [provider, { listed: 0, changed: 0, withdrawn }]),
    );
  }

  private async sync(running: RunningSync, wholesaler: Wholesaler): Promise<SyncOutcome> {
    try {
      const withdrawn = await this.withdrawForbidden(running, wholesaler.name);
      const offered = await callProvider(wholesaler, (signal) => wholesaler.listPackages(signal));
      const packages = offered
        .map((each) => toLivePackage(wholesaler.name, each, this.terms))
        .filter((each) => each !== null);
      const outcome = await this.write(running, wholesaler.name, packages);
      this.health.recordSync(wholesaler.name);
      return { ...outcome, withdrawn: outcome.withdrawn + withdrawn };
    } catch (error) {
      if (error instanceof SyncOvertaken) throw error;
      this.logger.warn({ event: 'catalog.sync_failed', provider: wholesaler.name, err: error });
      return { error: error instanceof CatalogShrank ? 'catalog_shrank' : 'provider_unavailable' };
    }
  }

  /**
   * What the rules say needs no list: a wholesaler is given up for another one just when it does not answer. And the
   * list is then compared with what the rules still allow, so that no change of them looks like a list that shrank.
   */
  private async withdrawForbidden(running: RunningSync, provider: string): Promise<number> {
    return this.inSync(running, async (tx) => {
      const sold = await this.catalog.listAvailable(tx, provider);
      const forbidden = sold.filter((item) => !isSoldBy(this.terms.rules, provider, item));
      if (forbidden.length === 0) return 0;
      const ids = forbidden.map(({ id }) => id);
      const withdrawn = await this.catalog.withdraw(tx, provider, ids);
      await this.catalog.recordPrices(tx, provider);
      return withdrawn;
    });
  }

  private async write(
    running: RunningSync,
    provider: string,
    packages: readonly LivePackage[],
  ): Promise<WrittenOutcome> {
    const ids = packages.map(({ item }) => item.id);
    return this.inSync(running, async (tx) => {
      const before = await this.catalog.countAvailable(tx, provider);
      const sold = packages.filter(({ item }) => item.available).length;
      if (before > ALWAYS_BELIEVED && sold < before * SMALLEST_SHARE) throw new CatalogShrank();
      const changed = await this.catalog.write(tx, provider, packages);
      const withdrawn = await this.catalog.withdrawOthers(tx, provider, ids);
      await this.catalog.recordPrices(tx, provider);
      return { listed: packages.length, changed, withdrawn };
    });
  }

  /** One transaction of this synchronisation. @throws SyncOvertaken when it is not this worker's any more */
  private async inSync<T>(running: RunningSync, work: (tx: Tx) => Promise<T>): Promise<T> {
    return this.transactions.run(async (tx) => {
      await this.syncs.hold(tx, running);
      return work(tx);
    });
  }
}

class CatalogShrank extends Error {
  constructor() {
    super('the wholesaler lists less than half of what is sold; nothing was changed');
    this.name = 'CatalogShrank';
  }
}
