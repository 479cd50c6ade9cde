import { Module } from '@nestjs/common';
import { AlertsModule } from '../alerts/index.js';
import { AuditModule } from '../audit/index.js';
import { PartnersModule } from '../partners/index.js';
import { ApiKeysController } from './admin/api-keys.controller.js';
import { ApiKeysRepository } from './api-keys.repository.js';
import { CreateKey } from './create-key.js';
import { KeyIssuer } from './key-issuer.js';
import { LastUsedRepository } from './key-uses.repository.js';
import { RevokeKey } from './revoke-key.js';
import { RotateKey } from './rotate-key.js';
import { ExpiringKeys } from './worker/expiring-keys.js';

@Module({
  imports: [PartnersModule],
  providers: [ApiKeysRepository, KeyIssuer, LastUsedRepository],
  exports: [ApiKeysRepository, KeyIssuer, LastUsedRepository],
})
export class ApiKeysModule {}

/** Warnings, in the worker. */
@Module({ imports: [ApiKeysModule, AlertsModule], providers: [ExpiringKeys] })
export class ApiKeysWorkerModule {}

/** Administration of keys, on the admin port. */
@Module({
  imports: [ApiKeysModule, PartnersModule, AuditModule],
  providers: [CreateKey, RevokeKey, RotateKey],
  controllers: [ApiKeysController],
})
export class ApiKeysAdminModule {}
