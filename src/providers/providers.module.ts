import { Inject, Injectable, Module, type OnApplicationShutdown, type OnModuleInit } from '@nestjs/common';
import { getEntityManagerToken, InjectEntityManager } from '@nestjs/typeorm';
import type { Logger } from 'pino';
import type { Registry } from 'prom-client';
import type { EntityManager } from 'typeorm';
import { APP_CONFIG, type AppConfig } from '../config/index.js';
import { Transactions } from '../infra/database/index.js';
import { LOGGER } from '../infra/logging.js';
import { METRICS } from '../infra/metrics.js';
import { Tracer } from '../infra/tracing/index.js';
import { EsimAccessProvider } from './esim-access/esim-access-provider.js';
import { EsimPurchasesRepository } from './esim-purchases.repository.js';
import {
  CircuitBreaker,
  PlacementGuard,
  ProviderHealthRepository,
  ProviderHttpClient,
  ProviderMetrics,
  ProviderRateLimiter,
} from './http/index.js';
import type { LiveProvider } from './live-provider.js';
import { ProviderRegistry } from './provider-registry.js';
import { SandboxProvider } from './sandbox/sandbox-provider.js';
import { SandboxProviderRepository } from './sandbox/sandbox-provider.repository.js';
import { ZenditProvider } from './zendit/zendit-provider.js';

/**
 * Connects the providers whose credentials are set; the others do not exist for this process. To add one, build and
 * register it here, and add its credentials to `config/config.ts`, its name to `config/live-package-rules.ts` and its
 * short name to `catalog-sync/live-packages.ts`.
 */
@Injectable()
class ConnectProviders implements OnModuleInit, OnApplicationShutdown {
  private readonly closers: (() => Promise<void>)[] = [];

  constructor(
    @Inject(APP_CONFIG) private readonly config: AppConfig,
    @Inject(LOGGER) private readonly logger: Logger,
    @InjectEntityManager() private readonly manager: EntityManager,
    private readonly registry: ProviderRegistry,
    private readonly health: ProviderHealthRepository,
    private readonly guard: PlacementGuard,
    private readonly metrics: ProviderMetrics,
    private readonly tracer: Tracer,
  ) {}

  onModuleInit(): void {
    const { esimAccess, zendit, soldNames } = this.config.liveProviders;
    for (const name of soldNames) this.registry.sell(name);
    if (esimAccess) this.registry.register(this.connectEsimAccess(esimAccess));
    if (zendit) this.registry.register(this.connectZendit(zendit));
  }

  async onApplicationShutdown(): Promise<void> {
    await Promise.all(this.closers.map((close) => close()));
  }

  private connectEsimAccess(
    credentials: NonNullable<AppConfig['liveProviders']['esimAccess']>,
  ): LiveProvider {
    const provider = new EsimAccessProvider(
      { ...credentials, ...this.timing() },
      {
        pace: this.pace(),
        guard: this.guard,
        logger: this.logger,
        health: this.health,
        metrics: this.metrics,
        tracer: this.tracer,
      },
    );
    this.closers.push(() => provider.close());
    return provider;
  }

  private connectZendit({
    baseUrl,
    apiKey,
  }: NonNullable<AppConfig['liveProviders']['zendit']>): LiveProvider {
    const client = new ProviderHttpClient({
      provider: 'zendit',
      baseUrl,
      timeoutMs: this.timing().timeoutMs,
      pace: this.pace(),
      breaker: new CircuitBreaker(),
      logger: this.logger,
      health: this.health,
      metrics: this.metrics,
      tracer: this.tracer,
    });
    this.closers.push(() => client.close());
    return new ZenditProvider({ client, apiKey, ...this.timing(), guard: this.guard, logger: this.logger });
  }

  private timing(): { timeoutMs: number; readLagMs: number; catalogTimeoutMs: number } {
    const { providerTimeoutMs, providerReadLagMs, providerCatalogTimeoutMs } = this.config.provisioning;
    return {
      timeoutMs: providerTimeoutMs,
      readLagMs: providerReadLagMs,
      catalogTimeoutMs: providerCatalogTimeoutMs,
    };
  }

  /** The limit lives in the database, so all instances count together. */
  private pace(): ProviderRateLimiter {
    return new ProviderRateLimiter(this.manager, this.config.provisioning.providerRequestsPerSecond);
  }
}

@Module({
  providers: [
    SandboxProviderRepository,
    SandboxProvider,
    ProviderRegistry,
    EsimPurchasesRepository,
    {
      provide: ProviderHealthRepository,
      inject: [getEntityManagerToken(), LOGGER],
      useFactory: (manager: EntityManager, logger: Logger) => new ProviderHealthRepository(manager, logger),
    },
    {
      provide: PlacementGuard,
      inject: [Transactions, getEntityManagerToken()],
      useFactory: (transactions: Transactions, manager: EntityManager) =>
        new PlacementGuard(transactions, manager),
    },
    {
      provide: ProviderMetrics,
      inject: [METRICS],
      useFactory: (registry: Registry) => new ProviderMetrics(registry),
    },
    ConnectProviders,
  ],
  exports: [
    ProviderRegistry,
    ProviderHealthRepository,
    PlacementGuard,
    EsimPurchasesRepository,
    SandboxProviderRepository,
  ],
})
export class ProvidersModule {}
