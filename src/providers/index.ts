export {
  callProvider,
  type EsimProvider,
  FAILURE_CODES,
  type FailureCode,
  type ProviderFailure,
  type ProviderOrderState,
  ProviderOutcomeUnknown,
  type ProviderProfile,
} from './esim-provider.js';
export { ProviderRegistry } from './provider-registry.js';
export { ProvidersModule } from './providers.module.js';
