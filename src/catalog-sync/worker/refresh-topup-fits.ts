import { Inject, Injectable } from '@nestjs/common';
import type { Logger } from 'pino';
import { APP_CONFIG, type AppConfig } from '../../config/index.js';
import { Transactions } from '../../infra/database/index.js';
import { LOGGER } from '../../infra/logging.js';
import {
  callProvider,
  type ProviderPackage,
  ProviderRegistry,
  ProviderUnavailable,
  type LiveProvider,
} from '../../providers/index.js';
import { LiveCatalogRepository } from '../live-catalog.repository.js';
import type { SalesTerms } from '../live-packages.js';
import { type FitsToAsk, TopupFitsRepository } from '../topup-fits.repository.js';
import { sellerOf, toLivePackages } from './store-list.js';
import { StorePackages } from './store-packages.js';

/** Packages per run: at 8 calls per second, 2,600 packages take about five minutes of each day. */
const PER_RUN = 8;
/** Retry delay of a package whose query failed; the others continue. */
const RETRY_MS = 600_000;
/** Added to the calls' time limits. */
const LEASE_MARGIN_MS = 30_000;

/**
 * Queries providers that know which top-ups fit which package, package by package. These calls have the lowest priority
 * at the rate limiter, so no order waits for them; meanwhile partners see the known list.
 */
@Injectable()
export class RefreshTopupFits {
  private readonly terms: SalesTerms;

  constructor(
    @Inject(APP_CONFIG) { provisioning }: AppConfig,
    @Inject(LOGGER) private readonly logger: Logger,
    private readonly providers: ProviderRegistry,
    private readonly fits: TopupFitsRepository,
    private readonly catalog: LiveCatalogRepository,
    private readonly packages: StorePackages,
    private readonly transactions: Transactions,
  ) {
    this.terms = { marginBps: provisioning.liveMarginBps, rules: provisioning.livePackageRules };
  }

  /** Queries some due packages and returns how many got a response. */
  async runOnce(): Promise<number> {
    let answered = 0;
    for (const liveProvider of this.providers.liveProviders) answered += await this.askSome(liveProvider);
    return answered;
  }

  private async askSome(liveProvider: LiveProvider): Promise<number> {
    if (liveProvider.listTopupsFor === null) return 0;
    const leaseMs = PER_RUN * liveProvider.timeoutMs + LEASE_MARGIN_MS;
    const take = { count: PER_RUN, leaseMs };
    const due = await this.transactions.run((tx) => this.fits.takeDue(tx, liveProvider.name, take));
    for (const [i, each] of due.entries()) {
      if (await this.ask(liveProvider, each)) continue;
      await this.putOff(due.slice(i + 1), 0);
      return i;
    }
    return due.length;
  }

  /** Returns whether the next package may be queried. */
  private async ask(liveProvider: LiveProvider, each: FitsToAsk): Promise<boolean> {
    const { baseId } = each;
    try {
      const offered = await callProvider(liveProvider, (signal) =>
        liveProvider.listTopupsFor!(each.upstreamId, signal),
      );
      await this.store(liveProvider, baseId, offered);
      return true;
    } catch (error) {
      // If the provider is busy or our own limit is reached, no query was sent.
      const isBusy = error instanceof ProviderUnavailable;
      await this.putOff([each], isBusy ? error.retryAfterMs : RETRY_MS);
      const { name: provider } = liveProvider;
      if (!isBusy) this.logger.warn({ event: 'catalog.topups_unknown', provider, baseId, err: error });
      return !isBusy;
    }
  }

  private async store(
    liveProvider: LiveProvider,
    baseId: string,
    offered: readonly ProviderPackage[],
  ): Promise<void> {
    const seller = sellerOf(liveProvider);
    const packages = toLivePackages(seller, offered, this.terms);
    const { refused } = await this.packages.store(seller, packages, (some) =>
      this.transactions.run((tx) => this.catalog.write(tx, seller, some)),
    );
    const ids = packages.map(({ item }) => item.id).filter((id) => !refused.includes(id));
    // Most likely our own fault: keep the current list.
    if (refused.length > ids.length) throw new Error('most top-ups could not be stored');
    await this.transactions.run(async (tx) => {
      const left = await this.fits.replace(tx, baseId, ids);
      await this.catalog.withdraw(tx, seller.provider, left);
    });
  }

  private async putOff(due: readonly FitsToAsk[], delayMs: number): Promise<void> {
    const ids = due.map(({ baseId }) => baseId);
    if (ids.length > 0) await this.transactions.run((tx) => this.fits.putOff(tx, ids, delayMs));
  }
}
