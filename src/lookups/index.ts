/**
 * Looks up one object for a person: the pages of an order, an eSIM and a top-up across partners for support, and the
 * order's page with its timeline in the portal. `Search` finds objects by a short text. Owns no table: reads through the repositories of the features.
 * Callers: the portal team on the admin port; a partner's users in the portal. Both share the handlers, and the caller
 * decides which rows it reaches.
 */
export { LookupsAdminModule, LookupsPortalModule } from './lookups.module.js';
