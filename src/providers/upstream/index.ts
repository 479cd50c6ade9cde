export * from './answer-reader.js';
export { CircuitBreaker, type CircuitBreakerOptions, type CircuitState } from './circuit-breaker.js';
export { TooLateToLeave } from './departure.js';
export {
  type ProviderHealth,
  ProviderHealthRepository,
  type UpstreamHealth,
} from './provider-health.repository.js';
export { PartlySilent, withinLook, type WithoutWord, withoutWord } from './partial-silence.js';
export {
  PlacementGuard,
  type PlacementPermit,
  type ProviderPlacement,
  RepeatLimitReached,
  type RepeatListener,
} from './placement-guard.js';
export { type SeenStanding, toStandings } from './seen-standings.js';
export {
  type UpstreamAnswer,
  UpstreamClient,
  type UpstreamClientOptions,
  type UpstreamRequest,
} from './upstream-client.js';
export { type PacedCall, UpstreamPace, type UpstreamPurpose } from './upstream-pace.js';
