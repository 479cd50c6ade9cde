import { Module } from '@nestjs/common';
import { AuditModule } from '../audit/index.js';
import { PortalAuthModule } from '../auth/index.js';
import { PartnersModule } from '../partners/index.js';
import { PortalSessionsController } from './admin/portal-sessions.controller.js';
import { SessionController } from './portal/session.controller.js';
import { PortalSessionsRepository } from './portal-sessions.repository.js';
import { PortalSessionsService } from './portal-sessions.service.js';

@Module({
  imports: [PartnersModule, AuditModule],
  providers: [PortalSessionsRepository, PortalSessionsService],
  exports: [PortalSessionsRepository, PortalSessionsService],
})
export class PortalSessionsModule {}

/** Creates and revokes sessions, on the admin port. */
@Module({ imports: [PortalSessionsModule, PartnersModule], controllers: [PortalSessionsController] })
export class PortalSessionsAdminModule {}

/** The browser's session, on the portal's port. */
@Module({ imports: [PortalSessionsModule, PortalAuthModule], controllers: [SessionController] })
export class PortalSessionsPortalModule {}
