export { EsimEntity } from './esim.entity.js';
export { EsimsModule } from './esims.module.js';
export { EsimsRepository } from './esims.repository.js';
export { type IssuedEsim, IssueEsims } from './issue-esims.js';
export { EsimsApiModule } from './api/esims-api.module.js';
export { EsimsAdminModule } from './admin/esims-admin.module.js';
export { EsimsWorkerModule } from './worker/esims-worker.module.js';
export { ESIM_STATUSES, type EsimStatus, isUntouched } from './esim.js';
