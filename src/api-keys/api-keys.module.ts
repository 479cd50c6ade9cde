import { Module } from '@nestjs/common';
import { AlertsModule } from '../alerts/index.js';
import { AuditModule } from '../audit/index.js';
import { PartnersModule } from '../partners/index.js';
import { ApiKeysController, PortalApiKeysController } from './admin/api-keys.controller.js';
import { ApiKeysRepository, LastUsedRepository } from './api-keys.repository.js';
import { ApiKeysService } from './api-keys.service.js';
import { ExpiringKeys } from './worker/expiring-keys.js';

@Module({
  providers: [ApiKeysRepository, LastUsedRepository],
  exports: [ApiKeysRepository, LastUsedRepository],
})
export class ApiKeysModule {}

/** Warns about expiring keys in the worker. */
@Module({ imports: [ApiKeysModule, AlertsModule], providers: [ExpiringKeys] })
export class ApiKeysWorkerModule {}

/** A partner's keys, on the portal's port. */
@Module({
  imports: [ApiKeysModule, PartnersModule, AuditModule],
  providers: [ApiKeysService],
  controllers: [PortalApiKeysController],
})
export class ApiKeysPortalModule {}

/** Administration of keys, on the admin port. */
@Module({
  imports: [ApiKeysModule, PartnersModule, AuditModule],
  providers: [ApiKeysService],
  controllers: [ApiKeysController],
})
export class ApiKeysAdminModule {}
