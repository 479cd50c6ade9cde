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
