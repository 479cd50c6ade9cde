export * from './response-reader.js';
export { CircuitBreaker, type CircuitBreakerOptions, type CircuitState } from './circuit-breaker.js';
export { SendDeadlineExceeded } from './send-deadline.js';
export {
  type ProviderHealth,
  ProviderHealthRepository,
  type ProviderHealthRecorder,
} from './provider-health.repository.js';
export {
  PartialResponse,
  lookupTimeout,
  type NoResponseReason,
  toNoResponseReason,
} from './partial-response.js';
export {
  PlacementGuard,
  type PlacementPermit,
  type ProviderPlacement,
  RepeatLimitReached,
  type RepeatListener,
} from './placement-guard.js';
export { type SeenCancelStatus, toCancelStatuses } from './cancel-statuses.js';
export {
  type ProviderHttpResponse,
  ProviderHttpClient,
  type ProviderHttpClientOptions,
  type ProviderHttpRequest,
} from './provider-http-client.js';
export { type RateLimitedCall, ProviderRateLimiter, type CallPurpose } from './provider-rate-limiter.js';
