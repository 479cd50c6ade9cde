import { PartnerEntity } from './partners.repository.js';

/**
 * The partners. Owns the tables `partners` and `sandbox_quotas`.
 * The portal team creates, changes, suspends and reinstates them through `partner-admin`; every admin path that begins with a
 * partner looks it up with `ExistingPartner` or `PartnersService`. A suspension needs no notification, because the key
 * check of every call (auth) reads the status.
 */
export { ExistingPartner, PartnersService } from './partners.service.js';
export {
  type NewPartner,
  PARTNER_STATUSES,
  type PartnerChanges,
  PartnersRepository,
  type PartnerStatus,
} from './partners.repository.js';
export { PartnersModule } from './partners.module.js';
export { SandboxQuota } from './sandbox-quota.js';
export { PartnerEntity };

export const PARTNER_ENTITIES = [PartnerEntity];
