import { PartnerEntity } from './partner.entity.js';

export { CreatePartner } from './create-partner.js';
export { ExistingPartner } from './existing-partner.pipe.js';
export { PartnersService } from './find-partner.js';
export { PARTNER_STATUSES, type PartnerStatus } from './partner.entity.js';
export { PartnersAdminModule, PartnersModule } from './partners.module.js';
export { type NewPartner, PartnersRepository } from './partners.repository.js';
export { PartnerEntity };

export const PARTNER_ENTITIES = [PartnerEntity];
