/**
 * Idempotency: a POST takes effect once per `Idempotency-Key` (spec section 5, D16 to D20). Owns the table
 * `idempotency_keys`.
 * Used by every controller with a POST: `@IdempotentPost` computes the key, the handler passes it to
 * `IdempotentExecutor`.
 * Flow: interceptor (key and fingerprint), mutex of this process, claim, work and stored response in one transaction; a
 * later call with the key gets the stored response. The worker purges keys after their 24 hours.
 */
export type { IdempotencyKey, IdempotentResponse, RenderedResponse } from './idempotency-key.js';
export { IdempotencyModule } from './idempotent-executor.js';
export { IdempotencyKeysRepository } from './idempotency-keys.repository.js';
export { IdempotentExecutor } from './idempotent-executor.js';
export {
  assertEveryPostIsIdempotent,
  IdempotencyInterceptor,
  IdempotencyKeyParam,
  type IdempotencyOwner,
  IdempotentPost,
  NoIdempotencyKey,
} from './idempotent-post.js';
