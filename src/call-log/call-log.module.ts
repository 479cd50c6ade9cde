import { Module } from '@nestjs/common';
import { ApiKeysModule } from '../api-keys/index.js';
import { PartnersModule } from '../partners/index.js';
import { RequestsController } from './admin/requests.controller.js';
import { AccessLog } from './access-log.js';
import { OwnRequestsController } from './api/own-requests.controller.js';
import { CallLogRepository, CallRowsRepository } from './call-log.repository.js';
import { PortalRequestsController } from './portal/portal-requests.controller.js';
import { IdempotencyPurge } from './worker/idempotency-purge.js';

/** Writes calls, on both HTTP ports. */
@Module({
  imports: [ApiKeysModule],
  providers: [CallRowsRepository, AccessLog],
  exports: [AccessLog],
})
export class CallLogModule {}

/** Reads calls, on the admin port. */
@Module({ imports: [PartnersModule], providers: [CallLogRepository], controllers: [RequestsController] })
export class CallLogAdminModule {}

/** A partner's own calls, on the partner port. */
@Module({ providers: [CallLogRepository], controllers: [OwnRequestsController] })
export class CallLogApiModule {}

/** A partner's calls, on the portal's port. */
@Module({ providers: [CallLogRepository], controllers: [PortalRequestsController] })
export class CallLogPortalModule {}

/** Retention, in the worker. */
@Module({ providers: [IdempotencyPurge], exports: [IdempotencyPurge] })
export class CallLogWorkerModule {}
