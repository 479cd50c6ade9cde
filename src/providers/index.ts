export { askProvider, callProvider } from './call-provider.js';
export {
  type EsimProvider,
  type EsimPurchases,
  FAILURE_CODES,
  type FailureCode,
  type KnownEsim,
  type Placement,
  type PlacementOperation,
  type ProviderCancelRequest,
  type ProviderUsageReport,
  type ProviderEsimRef,
  type ProviderCancelStatus,
  type ProviderFailure,
  type ProviderOrderParts,
  type ProviderOrderRequest,
  type ProviderOrderState,
  ProviderOutcomeUnknown,
  type PackageList,
  type PackagePage,
  type ProviderPackage,
  type ProviderProfile,
  type ProviderTopupRequest,
  type ProviderTopupState,
  ProviderUnavailable,
  type RepeatPolicy,
  type ProviderCost,
  type ProviderHint,
  type ProviderPurchase,
  type LiveProvider,
} from './esim-provider.js';
export { EsimPurchasesRepository } from './esim-purchases.repository.js';
export { ProviderRegistry } from './provider-registry.js';
export {
  PlacementGuard,
  type ProviderHealth,
  ProviderHealthRepository,
  type ProviderPlacement,
} from './http/index.js';
export { ProvidersModule } from './providers.module.js';
export { retryDelayMs } from './retry-delay.js';
export { unitCostOf } from './unit-cost.js';
