import { Inject, Injectable, type OnApplicationBootstrap, type OnModuleDestroy } from '@nestjs/common';
import type { Logger } from 'pino';
import { APP_CONFIG, type AppConfig } from '../../config/index.js';
import { LOGGER } from '../../infra/logging.js';
import { Sweeps } from '../../infra/sweeps.js';
import { callProvider, ProviderHealthRepository, ProviderRegistry } from '../../providers/index.js';
import { AnnounceChanges } from './announce-changes.js';
import { RefreshTopupFits } from './refresh-topup-fits.js';
import { SyncCatalog } from './sync-catalog.js';

const BALANCES_EVERY_MS = 300_000;

/** Keeps the live catalog and the providers' balances fresh. Idle when no provider is connected. */
@Injectable()
export class CatalogSyncJobs implements OnApplicationBootstrap, OnModuleDestroy {
  constructor(
    @Inject(APP_CONFIG) private readonly config: AppConfig,
    @Inject(LOGGER) private readonly logger: Logger,
    private readonly providers: ProviderRegistry,
    private readonly health: ProviderHealthRepository,
    private readonly sync: SyncCatalog,
    private readonly announce: AnnounceChanges,
    private readonly topups: RefreshTopupFits,
    private readonly sweeps: Sweeps,
  ) {}

  onApplicationBootstrap(): void {
    this.warnOfIdleRules();
    if (this.providers.liveProviders.length === 0) return;
    this.sweeps.register({
      name: 'catalog.sync',
      intervalMs: this.config.sweepIntervalMs,
      run: () => this.sync.runIfDue(),
    });
    this.sweeps.register({
      name: 'catalog.changed',
      intervalMs: this.config.sweepIntervalMs,
      run: (stopping) => this.announce.run(stopping),
    });
    this.sweeps.register({
      name: 'catalog.topups',
      intervalMs: this.config.sweepIntervalMs,
      run: () => this.topups.runOnce(),
    });
    this.sweeps.register({
      name: 'providers.balances',
      intervalMs: BALANCES_EVERY_MS,
      run: () => this.readBalances(),
    });
  }

  /** Runs before the sweeps are awaited, because a synchronization may take minutes. */
  onModuleDestroy(): void {
    this.sync.stop();
  }

  /**
   * Warns about rules that assign packages to a provider that is not connected: nobody sells them. This may be
   * intended, or a credential may be missing.
   */
  private warnOfIdleRules(): void {
    const connected = this.providers.names;
    const named = this.config.provisioning.livePackageRules.map(({ provider }) => provider);
    const providers = [...new Set(named)].filter((name) => name !== null && !connected.includes(name));
    if (providers.length === 0) return;
    this.logger.warn({ event: 'catalog.rule_names_unconnected', providers });
  }

  private async readBalances(): Promise<void> {
    for (const liveProvider of this.providers.liveProviders) {
      try {
        const balance = await callProvider(liveProvider, (signal) => liveProvider.getBalance(signal));
        this.health.recordBalance(liveProvider.name, balance);
      } catch (error) {
        this.logger.warn({ event: 'provider.balance_unknown', provider: liveProvider.name, err: error });
      }
    }
  }
}
