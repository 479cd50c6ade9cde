import { Module } from '@nestjs/common';
import { ProviderRegistry } from './provider-registry.js';
import { SandboxProvider } from './sandbox/sandbox-provider.js';
import { SandboxUpstreamRepository } from './sandbox/sandbox-upstream.repository.js';

@Module({
  providers: [SandboxUpstreamRepository, SandboxProvider, ProviderRegistry],
  exports: [ProviderRegistry],
})
export class ProvidersModule {}
