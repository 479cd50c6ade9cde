import { Module } from '@nestjs/common';
import { CatalogModule } from '../catalog/index.js';
import { EventsModule } from '../events/index.js';
import { ProvidersModule } from '../providers/index.js';
import { PartnersModule } from '../partners/index.js';
import { EsimObserver } from './esim-observer.js';
import { EsimsRepository } from './esims.repository.js';
import { IssueEsims } from './issue-esims.js';
import { EsimQueries } from './esim-queries.js';
import { SimulateEsim } from './simulate-esim.js';
import { EsimsController } from './api/esims.controller.js';
import { QrCodes } from './api/qr-codes.js';
import { SandboxEsimsController } from './api/sandbox-esims.controller.js';
import { PartnerEsimsController } from './admin/partner-esims.controller.js';
import { EsimExpiry } from './worker/esim-expiry.js';

@Module({
  imports: [CatalogModule, EventsModule, ProvidersModule],
  providers: [EsimsRepository, EsimObserver, IssueEsims, EsimQueries, SimulateEsim],
  exports: [EsimsRepository, EsimObserver, IssueEsims, EsimQueries, SimulateEsim],
})
export class EsimsModule {}

/** eSIMs as partners read them, and the sandbox device. */
@Module({
  imports: [EsimsModule],
  providers: [QrCodes],
  controllers: [EsimsController, SandboxEsimsController],
})
export class EsimsApiModule {}

/** Support's view of a partner's eSIMs. */
@Module({ imports: [PartnersModule, EsimsModule], controllers: [PartnerEsimsController] })
export class EsimsAdminModule {}

/** The expiry of what has ended, in the worker. */
@Module({ imports: [EsimsModule], providers: [EsimExpiry] })
export class EsimsWorkerModule {}
