export * from './response-reader.js';
export { CircuitBreaker, type CircuitBreakerOptions, type CircuitState } from './circuit-breaker.js';
export { SendDeadlineExceeded } from '../call-provider.js';
export {
  type ProviderHealth,
  type ProviderHealthRecorder,
  ProviderHealthRepository,
} from './provider-health.repository.js';
export {
  PlacementGuard,
  type PlacementPermit,
  type ProviderPlacement,
  RepeatLimitReached,
  type RepeatListener,
} from './placement-guard.js';
export {
  ProviderHttpClient,
  type ProviderHttpClientOptions,
  type ProviderHttpRequest,
  type ProviderHttpResponse,
} from './provider-http-client.js';
export { ProviderMetrics } from './provider-metrics.js';
export { type CallPurpose, ProviderRateLimiter, type RateLimitedCall } from './provider-rate-limiter.js';
