import { Inject, Injectable } from '@nestjs/common';
import type { Logger } from 'pino';
import { APP_CONFIG, type AppConfig } from '../../config/index.js';
import { Transactions } from '../../infra/database/index.js';
import { LOGGER } from '../../infra/logging/index.js';
import {
  callProvider,
  ProviderHealthRepository,
  ProviderRegistry,
  type Wholesaler,
} from '../../providers/index.js';
import type { SyncOutcome } from '../catalog-sync.entity.js';
import { CatalogSyncsRepository } from '../catalog-syncs.repository.js';
import { type LivePackage, toLivePackage } from '../live-packages.js';
import { LiveCatalogRepository } from '../live-catalog.repository.js';

/** A list that lost more than half of what is sold is a fault of the wholesaler's, not a decision of its. */
const SMALLEST_SHARE = 0.5;
/** A dozen packages may well go at once. */
const ALWAYS_BELIEVED = 12;

/**
 * Brings the wholesalers' packages into the live catalogue (issue 4, part 2): one call outside any transaction, then
 * one transaction for each wholesaler. A wholesaler that fails keeps what it had.
 */
@Injectable()
export class SyncCatalog {
  constructor(
    @Inject(APP_CONFIG) private readonly config: AppConfig,
    @Inject(LOGGER) private readonly logger: Logger,
    private readonly providers: ProviderRegistry,
    private readonly health: ProviderHealthRepository,
    private readonly syncs: CatalogSyncsRepository,
    private readonly catalog: LiveCatalogRepository,
    private readonly transactions: Transactions,
  ) {}

  /** Does what is asked for or due; answers whether there was something. */
  async runIfDue(): Promise<boolean> {
    const { catalogSyncIntervalMs } = this.config.provisioning;
    const id = await this.transactions.run((tx) => this.syncs.begin(tx, catalogSyncIntervalMs));
    if (id === null) return false;
    const outcomes: Record<string, SyncOutcome> = {};
    for (const wholesaler of this.providers.wholesalers)
      outcomes[wholesaler.name] = await this.sync(wholesaler);
    await this.transactions.run((tx) => this.syncs.end(tx, id, outcomes));
    this.logger.info({ event: 'catalog.synced', syncId: id, outcomes });
    return true;
  }

  private async sync(wholesaler: Wholesaler): Promise<SyncOutcome> {
    try {
      const offered = await callProvider(wholesaler, (signal) => wholesaler.listPackages(signal));
      const { liveMarginBps } = this.config.provisioning;
      const packages = offered
        .map((each) => toLivePackage(wholesaler.name, each, liveMarginBps))
        .filter((each) => each !== null);
      const outcome = await this.write(wholesaler.name, packages);
      this.health.recordSync(wholesaler.name);
      return outcome;
    } catch (error) {
      this.logger.warn({ event: 'catalog.sync_failed', provider: wholesaler.name, err: error });
      return { error: error instanceof CatalogShrank ? 'catalog_shrank' : 'provider_unavailable' };
    }
  }

  private async write(provider: string, packages: readonly LivePackage[]): Promise<SyncOutcome> {
    const ids = packages.map(({ item }) => item.id);
    return this.transactions.run(async (tx) => {
      const before = await this.catalog.countAvailable(tx, provider);
      const sold = packages.filter(({ item }) => item.available).length;
      if (before > ALWAYS_BELIEVED && sold < before * SMALLEST_SHARE) throw new CatalogShrank();
      const changed = await this.catalog.write(tx, provider, packages);
      const withdrawn = await this.catalog.withdrawOthers(tx, provider, ids);
      await this.catalog.recordPrices(tx, provider);
      return { listed: packages.length, changed, withdrawn };
    });
  }
}

class CatalogShrank extends Error {
  constructor() {
    super('the wholesaler lists less than half of what is sold; nothing was changed');
    this.name = 'CatalogShrank';
  }
}
