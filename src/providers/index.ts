/**
 * The companies that provision eSIMs, behind one port: `EsimProvider` buys, tops up and cancels; `LiveProvider` also
 * lists packages and usage. Tables: provider_health, provider_placements, upstream_pace, sandbox_upstream_*.
 * Callers: orders, topups, esim-sync, catalog-sync and reconciliation, which find a provider in `ProviderRegistry`.
 * Flow: use case, callProvider (deadline), a provider's folder, PlacementGuard, http/ (rate limit, circuit, send).
 * To add a provider, write a folder that implements live-provider.ts and build it in providers.module.ts, whose header
 * lists the rest.
 */
export {
  askProvider,
  callProvider,
  type ProviderWorkerConfig,
  providerWorkerOptions,
  retryDelayMs,
} from './call-provider.js';
export {
  type EsimControl,
  type EsimControlResult,
  type EsimProvider,
  type EsimPurchases,
  FAILURE_CODES,
  type FailureCode,
  type KnownEsim,
  type Placement,
  type PlacementOperation,
  type ProviderCancelRequest,
  type ProviderCancelStatus,
  type ProviderCost,
  type ProviderEsimRef,
  type ProviderFailure,
  type ProviderOrderParts,
  type ProviderOrderRequest,
  type ProviderOrderState,
  ProviderOutcomeUnknown,
  type ProviderProfile,
  type ProviderTopupRequest,
  type ProviderTopupState,
  ProviderUnavailable,
  type RepeatPolicy,
  unitCostOf,
} from './esim-provider.js';
export type {
  LiveProvider,
  PackageList,
  PackagePage,
  ProviderHint,
  ProviderPackage,
  ProviderPurchase,
  ProviderPlan,
  ProviderUsageReport,
  SoldList,
  SoldPurchase,
} from './live-provider.js';
export { actionsOfferedBy } from './offered-actions.js';
export { EsimPurchasesRepository } from './esim-purchases.repository.js';
export {
  freshReference,
  type PlacementKind,
  placementReference,
  readPlacementReference,
} from './placement-reference.js';
export { ProviderRegistry } from './provider-registry.js';
export {
  PlacementGuard,
  type ProviderHealth,
  ProviderHealthRepository,
  type ProviderPlacement,
} from './http/index.js';
export { SandboxProviderRepository } from './sandbox/sandbox-provider.repository.js';
export { ProvidersModule } from './providers.module.js';
