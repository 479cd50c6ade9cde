import { PortalSessionEntity } from './portal-session.entity.js';

/**
 * Sessions of the partner portal (D50): the portal team authenticates users, this service stores sessions. Owns
 * `portal_sessions`.
 * The portal team creates, lists and revokes them on the admin port. A browser exchanges the link's code for a cookie
 * and ends its session on the portal's port. The cookie check of every call is in auth; `retention` purges them.
 */
export {
  PortalSessionsAdminModule,
  PortalSessionsModule,
  PortalSessionsPortalModule,
} from './portal-sessions.module.js';
export { PortalSessionsRepository } from './portal-sessions.repository.js';

export const PORTAL_SESSION_ENTITIES = [PortalSessionEntity];
