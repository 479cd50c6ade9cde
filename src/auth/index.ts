export { AdminAuthenticator } from './admin-gate.js';
export { AdminAuthModule, PartnerAuthModule } from './auth.module.js';
export { AdminTokenGuard, BearerKeyGuard, Caller, SandboxOnlyGuard } from './guards.js';
export { PartnerAuthenticator } from './partner-gate.js';
export { AdminPrincipal, PartnerPrincipal } from './principal.js';
