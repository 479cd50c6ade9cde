import { Module } from '@nestjs/common';
import { getEntityManagerToken } from '@nestjs/typeorm';
import type { Logger } from 'pino';
import type { EntityManager } from 'typeorm';
import { LOGGER } from '../infra/logging/index.js';
import { ConnectWholesalers } from './connect-wholesalers.js';
import { ProviderRegistry } from './provider-registry.js';
import { SandboxProvider } from './sandbox/sandbox-provider.js';
import { ProviderHealthRepository } from './upstream/index.js';
import { SandboxUpstreamRepository } from './sandbox/sandbox-upstream.repository.js';

@Module({
  providers: [
    SandboxUpstreamRepository,
    SandboxProvider,
    ProviderRegistry,
    {
      provide: ProviderHealthRepository,
      inject: [getEntityManagerToken(), LOGGER],
      useFactory: (manager: EntityManager, logger: Logger) => new ProviderHealthRepository(manager, logger),
    },
    ConnectWholesalers,
  ],
  exports: [ProviderRegistry, ProviderHealthRepository],
})
export class ProvidersModule {}
