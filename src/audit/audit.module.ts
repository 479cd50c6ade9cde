import { Module } from '@nestjs/common';
import { AuditLogController } from './admin/audit-log.controller.js';
import { AuditLog } from './audit-log.js';
import { AuditRepository } from './audit.repository.js';

@Module({ providers: [AuditLog, AuditRepository], exports: [AuditLog, AuditRepository] })
export class AuditModule {}

/** The reading side, on the admin port. */
@Module({ imports: [AuditModule], controllers: [AuditLogController] })
export class AuditAdminModule {}
