export { Idempotent, IdempotencyInterceptor, type IdempotencyOwner } from './idempotency.interceptor.js';
export { IdempotencyModule } from './idempotency.module.js';
export { IdempotencyStore } from './idempotency.store.js';
export type { Answer, IdempotentCall, RenderedAnswer } from './idempotent-call.js';
export { OnceOnly } from './once-only.js';
