export { AdminGate } from './admin-gate.js';
export { AdminAuthModule, PartnerAuthModule, RateLimitStorageModule } from './auth.module.js';
export { GcraThrottlerStorage, toThrottlerLimit } from './gcra-throttler.storage.js';
export { AdminTokenGuard, BearerKeyGuard, Caller, SandboxOnlyGuard } from './guards.js';
export { PartnerGate } from './partner-gate.js';
export { AdminPrincipal, PartnerPrincipal } from './principal.js';
