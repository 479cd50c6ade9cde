import { PortalSessionEntity } from './portal-session.entity.js';

/**
 * Sessions of the partner portal (D50): the portal team knows who somebody is, we keep the sessions. Owns `portal_sessions`.
 * The portal team mints, lists and revokes them on the admin port; a browser exchanges the code of the link for a cookie
 * and ends its session on the portal's port. The check of the cookie at every call is in auth; the worker purges.
 */
export {
  PortalSessionsAdminModule,
  PortalSessionsPortalModule,
  PortalSessionsWorkerModule,
} from './portal-sessions.module.js';

export const PORTAL_SESSION_ENTITIES = [PortalSessionEntity];
