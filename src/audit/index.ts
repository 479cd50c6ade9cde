import { AuditEntryEntity } from './audit.repository.js';

/**
 * The audit log of administrative changes. Owns the table `audit_log`, whose rows are never changed.
 * Every admin use case calls `AuditLog.record` in the transaction of its change, with the author from `@Author()`; the
 * service itself writes as `system`. The portal team reads the log on the admin port.
 */
export { type AuditEntry, AuditLog, Author, type ChangeAuthor } from './audit-log.js';
export { type LoggedChange, LostChanges, type ReadChanges } from './lost-changes.js';
export { AuditAdminModule, AuditModule } from './audit.module.js';
export { AuditEntryEntity };

export const AUDIT_ENTITIES = [AuditEntryEntity];
