import { ApiCallEntity } from './api-call.entity.js';

export { AccessLog } from './buffered-call-recorder.js';
export { AccessLogLines } from './call-lines.js';
export { CallLogAdminModule, CallLogModule, CallLogWorkerModule } from './call-log.module.js';
export { CallLogMaintenance } from './worker/call-log-maintenance.js';

export const CALL_LOG_ENTITIES = [ApiCallEntity];
