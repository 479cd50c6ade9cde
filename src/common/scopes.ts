/** Scopes of a partner portal session (D50). */
export const PORTAL_SCOPES = [
  'keys:read',
  'keys:write',
  'webhooks:read',
  'webhooks:write',
  'webhooks:replay',
  'catalog:read',
  'orders:read',
  'esims:write',
  'requests:read',
  'wallet:read',
  'refunds:write',
  'brand:write',
] as const;
export type PortalScope = (typeof PORTAL_SCOPES)[number];

/** Scopes of an admin token. It can grant the portal scopes to sessions; the others apply to the admin API alone. */
export const ADMIN_SCOPES = [
  ...PORTAL_SCOPES,
  'partners:read',
  'partners:write',
  'money:write',
  'orders:resolve',
  'providers:read',
  'catalog:sync',
  'alerts:read',
  'audit:read',
] as const;
export type AdminScope = (typeof ADMIN_SCOPES)[number];

/** Scopes of an API key (D62). */
export const KEY_SCOPES = [
  'catalog:read',
  'orders:read',
  'orders:write',
  'esims:read',
  'esims:write',
  'install:read',
  'topups:write',
  'wallet:read',
  'events:read',
  'refunds:write',
] as const;
export type KeyScope = (typeof KEY_SCOPES)[number];

export type Scope = AdminScope | KeyScope;
