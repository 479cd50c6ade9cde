import { PartnerEntity } from './partner.entity.js';

/**
 * The partners whom the service sells to. Owns the table `partners`.
 * The portal team creates, changes, suspends and reinstates them on the admin port; every admin path that begins with
 * a partner looks it up by `ExistingPartner` or `PartnersService`. A suspension needs no telling: the key check of
 * every call (auth) reads the status.
 */
export { ExistingPartner } from './partners.service.js';
export { PARTNER_STATUSES, type PartnerStatus } from './partner.entity.js';
export { PartnersAdminModule, PartnersModule } from './partners.module.js';
export { type NewPartner, PartnersRepository } from './partners.repository.js';
export { PartnersService } from './partners.service.js';
export { PartnerEntity };

export const PARTNER_ENTITIES = [PartnerEntity];
