import { ApiCallEntity } from './api-call.entity.js';

/**
 * The call log: each call with its caller and result (D38). Owns the table `api_calls`, partitioned by day.
 * The edge of both HTTP ports records every call in `AccessLog`, which writes its line and, in batches, its row and the
 * key's `last_used_at`. Support reads the rows on the admin port; `src/apps/partitions.ts` creates and drops the days.
 */
export { AccessLog } from './access-log.js';
export { toAccessLogLine } from './access-log-line.js';
export { CALL_LOG_TABLE, CallLogRepository } from './call-log.repository.js';
export {
  CallLogAdminModule,
  CallLogApiModule,
  CallLogModule,
  CallLogPortalModule,
  CallLogWorkerModule,
} from './call-log.module.js';
export { IdempotencyPurge } from './worker/idempotency-purge.js';

export const CALL_LOG_ENTITIES = [ApiCallEntity];
