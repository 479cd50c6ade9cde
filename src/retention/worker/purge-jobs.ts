import { Inject, Injectable } from '@nestjs/common';
import type { Logger } from 'pino';
import type { Counter, Registry } from 'prom-client';
import { AlertsRepository } from '../../alerts/index.js';
import { KeySpending, PurgeRateBuckets } from '../../auth/index.js';
import { CatalogChangesRepository } from '../../catalog/index.js';
import { CatalogHistoryRepository } from '../../catalog-sync/index.js';
import { APP_CONFIG, type AppConfig, CATALOG_CHANGE_DAYS } from '../../config/index.js';
import { LOGGER } from '../../infra/logging.js';
import { counterIn, METRICS } from '../../infra/metrics.js';
import { purgeInSteps } from '../../infra/purge-in-steps.js';
import { AFTER_START_MS, Sweeps } from '../../infra/sweeps.js';
import { InstallLinksRepository } from '../../install-links/index.js';
import { PortalSessionsRepository } from '../../portal-sessions/index.js';
import { PurgeSandboxOrders } from './purge-sandbox-orders.js';

const EVERY_MS = 600_000;
/** A stranger can create one bucket per call, and a run reads only a limited number of buckets that it keeps. */
const BUCKETS_EVERY_MS = 60_000;

/**
 * Runs the purges that no feature runs itself: soon after the start and every ten minutes, for buckets every minute
 * (D44).
 */
@Injectable()
export class PurgeJobs {
  private readonly purged: Counter<'what'>;

  constructor(
    @Inject(APP_CONFIG) { retention }: Pick<AppConfig, 'retention'>,
    @Inject(LOGGER) private readonly logger: Logger,
    @Inject(METRICS) metrics: Registry,
    sandboxOrders: PurgeSandboxOrders,
    alerts: AlertsRepository,
    catalog: CatalogHistoryRepository,
    catalogChanges: CatalogChangesRepository,
    rateBuckets: PurgeRateBuckets,
    keySpending: KeySpending,
    installLinks: InstallLinksRepository,
    portalSessions: PortalSessionsRepository,
    private readonly sweeps: Sweeps,
  ) {
    this.purged = counterIn(metrics, {
      name: 'retention_purged_total',
      help: "Rows deleted by this process's purges, by kind. A Sandbox order counts as one, without its dependent rows.",
      labelNames: ['what'],
    });
    this.register('sandbox_orders', (stopping) => sandboxOrders.purge(stopping));
    this.register('rate_buckets', (stopping) => rateBuckets.purge(stopping), BUCKETS_EVERY_MS);
    this.registerSteps('key_spending', (limit) => keySpending.purge(limit));
    this.registerSteps('alerts', (limit) => alerts.purge(retention.alertDays, limit));
    this.registerSteps('install_links', (limit) => installLinks.purge(retention.installLinkDays, limit));
    this.registerSteps('portal_sessions', (limit) =>
      portalSessions.purge(retention.portalSessionDays, limit),
    );
    this.registerSteps('price_history', (limit) => catalog.purgePrices(retention.priceHistoryDays, limit));
    this.registerSteps('catalog_changes', (limit) => catalogChanges.purge(CATALOG_CHANGE_DAYS, limit));
    this.registerSteps('catalog_syncs', (limit) => catalog.purgeSyncs(retention.catalogSyncDays, limit));
  }

  private registerSteps(what: string, step: (limit: number) => Promise<number>): void {
    this.register(what, (stopping) => purgeInSteps(step, { stopping }));
  }

  private register(
    what: string,
    purge: (stopping: AbortSignal) => Promise<number>,
    intervalMs = EVERY_MS,
  ): void {
    this.sweeps.register({
      name: `retention.${what}`,
      intervalMs,
      firstAfterMs: AFTER_START_MS,
      run: async (stopping) => {
        const count = await purge(stopping);
        this.purged.inc({ what }, count);
        if (count > 0) this.logger.info({ event: 'retention.purged', what, count });
      },
    });
  }
}
