import { Module } from '@nestjs/common';
import { getEntityManagerToken } from '@nestjs/typeorm';
import type { Logger } from 'pino';
import type { EntityManager } from 'typeorm';
import { LOGGER } from '../infra/logging.js';
import { ConnectWholesalers } from './connect-wholesalers.js';
import { EsimPurchasesRepository } from './esim-purchases.repository.js';
import { ProviderRegistry } from './provider-registry.js';
import { SandboxProvider } from './sandbox/sandbox-provider.js';
import { Transactions } from '../infra/database/index.js';
import { PlacementGuard, ProviderHealthRepository } from './upstream/index.js';
import { SandboxUpstreamRepository } from './sandbox/sandbox-upstream.repository.js';

@Module({
  providers: [
    SandboxUpstreamRepository,
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
    ConnectWholesalers,
  ],
  exports: [ProviderRegistry, ProviderHealthRepository, PlacementGuard, EsimPurchasesRepository],
})
export class ProvidersModule {}
