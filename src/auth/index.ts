/**
 * Authentication and rate limits (spec sections 2 and 8, D12 to D15, D21). Owns the tables `rate_buckets` and `key_spending`; reads
 * `api_keys` and `partners` in the statement of the key check, so that a revocation or suspension takes effect at once.
 * Flow: edge -> PartnerAuthenticator (401, 403, 429) -> ApiKeyAuthenticator (key check and charge in one statement, or
 * Redis) -> rate-limit.ts (headers). Admin port: AdminAuthenticator, then AdminRateLimitGuard.
 * Portal: PortalAuthenticator reads the cookie's session (D50), with `portal_sessions` and `partners` in one statement.
 * KeySpending counts the purchases of keys with a spend limit (D62); the wallet calls it at acceptance.
 * Retention purges full buckets and past days.
 * The edge calls an authenticator before the body is read. Controllers name a guard, which asserts that this has
 * happened, and read the principal with `@Caller()`.
 */
export {
  AdminAuthModule,
  KeySpendingModule,
  PartnerAuthModule,
  PortalAuthModule,
  RateBucketPurgeModule,
  RateLimitStorageModule,
} from './auth.module.js';
export { AdminAuthenticator, PartnerAuthenticator } from './authenticators.js';
export { GcraThrottlerStorage, toThrottlerLimit } from './gcra-throttler.storage.js';
export { AdminTokenGuard, BearerKeyGuard, Caller, PartnerId, SandboxOnlyGuard } from './guards.js';
export { codeRefused, PortalAuthenticator } from './portal-authenticator.js';
export { cookieName, writeCookie } from './portal-cookie.js';
export { KeySpending, type ReturnedSpending } from './key-spending.js';
export { PortalCodeGuard, PortalSessionGuard } from './portal-guards.js';
export { PurgeRateBuckets } from './purge-rate-buckets.js';
export {
  type AdminOrPortalPrincipal,
  AdminPrincipal,
  PartnerPrincipal,
  PortalPrincipal,
  type PortalSession,
} from './principal.js';
export { assertEveryRouteNeedsAScope, type NeededScopes, NeedsScope, scopesOf } from './scopes.js';
