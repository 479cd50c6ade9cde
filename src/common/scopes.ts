/** What a session of the partner portal may do (D50). */
export const PORTAL_SCOPES = [
  'keys:read',
  'keys:write',
  'webhooks:read',
  'webhooks:write',
  'webhooks:replay',
  'orders:read',
  'requests:read',
  'wallet:read',
] as const;
export type PortalScope = (typeof PORTAL_SCOPES)[number];

/** What an admin token may do: it gives the scopes of the portal to sessions, the others are of the admin API alone. */
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
