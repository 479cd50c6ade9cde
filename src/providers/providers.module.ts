import { Module } from '@nestjs/common';
import { getEntityManagerToken } from '@nestjs/typeorm';
import type { Logger } from 'pino';
import type { EntityManager } from 'typeorm';
import { LOGGER } from '../infra/logging.js';
import { ConnectProviders } from './connect-providers.js';
import { EsimPurchasesRepository } from './esim-purchases.repository.js';
import { ProviderRegistry } from './provider-registry.js';
import { SandboxProvider } from './sandbox/sandbox-provider.js';
import { Transactions } from '../infra/database/index.js';
import { PlacementGuard, ProviderHealthRepository } from './http/index.js';
import { SandboxProviderRepository } from './sandbox/sandbox-provider.repository.js';

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
