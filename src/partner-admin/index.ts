/**
 * The portal team's administration of partners on the admin port: name, brand, low-balance threshold, suspension; and
 * the brand in the portal. Owns no table. It is a feature of its own because a partner's settings include its wallet's, and `wallet` uses `partners`.
 */
export { PartnerAdminModule, PartnerPortalModule } from './partner-admin.module.js';
