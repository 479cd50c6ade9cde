import { Module } from '@nestjs/common';
import { AuditLogController } from './admin/audit-log.controller.js';
import { AuditLog } from './audit-log.js';
import { AuditRepository } from './audit.repository.js';
import { LostChanges } from './lost-changes.js';

@Module({
  providers: [AuditLog, AuditRepository, LostChanges],
  exports: [AuditLog, AuditRepository, LostChanges],
})
export class AuditModule {}

/** Lists the audit log on the admin port. */
@Module({ imports: [AuditModule], controllers: [AuditLogController] })
export class AuditAdminModule {}
