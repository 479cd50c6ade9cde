import { Module } from '@nestjs/common';
import { AuditModule } from '../audit/index.js';
import { CatalogModule } from '../catalog/index.js';
import { EventsModule } from '../events/index.js';
import { ProvidersModule } from '../providers/index.js';
import { PartnersModule } from '../partners/index.js';
import { AutoTopupsRepository } from './auto-topups.repository.js';
import { ChangeEsim } from './change-esim.js';
import { EsimObserver } from './esim-observer.js';
import { EsimsRepository } from './esims.repository.js';
import { IssueEsims } from './issue-esims.js';
import { EsimQueries } from './esim-queries.js';
import { SimulateEsim } from './simulate-esim.js';
import { EsimsController } from './api/esims.controller.js';
import { QrCodes } from './qr-codes.js';
import { SandboxEsimsController } from './api/sandbox-esims.controller.js';
import { PartnerEsimsController } from './admin/partner-esims.controller.js';
import { PortalEsimsController } from './portal/portal-esims.controller.js';
import { EsimExpiry } from './worker/esim-expiry.js';
import { ExpiryWarnings } from './worker/expiry-warnings.js';

@Module({
  imports: [CatalogModule, EventsModule, PartnersModule, ProvidersModule],
  providers: [
    EsimsRepository,
    AutoTopupsRepository,
    EsimObserver,
    IssueEsims,
    EsimQueries,
    ChangeEsim,
    SimulateEsim,
  ],
  exports: [
    EsimsRepository,
    AutoTopupsRepository,
    EsimObserver,
    IssueEsims,
    EsimQueries,
    ChangeEsim,
    SimulateEsim,
  ],
})
export class EsimsModule {}

/** The partner API of eSIMs, and the sandbox device. */
@Module({
  imports: [EsimsModule],
  providers: [QrCodes],
  controllers: [EsimsController, SandboxEsimsController],
})
export class EsimsApiModule {}

/** A partner's eSIMs, on the portal's port. */
@Module({
  imports: [EsimsModule, AuditModule],
  providers: [QrCodes],
  controllers: [PortalEsimsController],
})
export class EsimsPortalModule {}

/** Support's view of a partner's eSIMs. */
@Module({ imports: [PartnersModule, EsimsModule], controllers: [PartnerEsimsController] })
export class EsimsAdminModule {}

/** Expires eSIMs in the worker, and warns before. */
@Module({ imports: [EsimsModule], providers: [EsimExpiry, ExpiryWarnings] })
export class EsimsWorkerModule {}
