import { AuditEntryEntity } from './audit-entry.entity.js';

export { AuditEntryEntity };
export { type AuditEntry, AuditLog } from './audit-log.js';
export { AuditAdminModule, AuditModule } from './audit.module.js';
export { Author, type ChangeAuthor } from './change-author.js';

export const AUDIT_ENTITIES = [AuditEntryEntity];
