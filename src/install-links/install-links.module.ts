import { Module } from '@nestjs/common';
import { AuditModule } from '../audit/index.js';
import { RateLimitStorageModule } from '../auth/index.js';
import { EsimsModule, QrCodes } from '../esims/index.js';
import { InstallLinksController } from './api/install-links.controller.js';
import { InstallLinksRepository } from './install-links.repository.js';
import { InstallLinksService } from './install-links.service.js';
import { AccessPass } from './page/access-pass.js';
import { InstallPageController } from './page/install-page.controller.js';
import { InstallPageRepository } from './page/install-page.repository.js';
import { InstallAuthenticator } from './page/install-visit.js';
import { OpeningCounter } from './page/opening-counter.js';
import { PortalInstallLinksController } from './portal/portal-install-links.controller.js';

@Module({
  imports: [AuditModule, EsimsModule],
  providers: [InstallLinksRepository, InstallLinksService],
  exports: [InstallLinksRepository, InstallLinksService],
})
export class InstallLinksModule {}

/** A partner's install links. */
@Module({ imports: [InstallLinksModule], controllers: [InstallLinksController] })
export class InstallLinksApiModule {}

/** A partner's install links, on the portal's port. */
@Module({ imports: [InstallLinksModule], controllers: [PortalInstallLinksController] })
export class InstallLinksPortalModule {}

/** The install page, on its own port. */
@Module({
  imports: [RateLimitStorageModule],
  providers: [InstallPageRepository, InstallAuthenticator, AccessPass, OpeningCounter, QrCodes],
  controllers: [InstallPageController],
})
export class InstallLinksPageModule {}
