export { TopupsAdminModule } from './admin/topups-admin.module.js';
export { TopupsApiModule } from './api/topups-api.module.js';
export { TopupEntity } from './topup.entity.js';
export { TopupJobsRepository } from './topup-jobs.repository.js';
export { TopupsModule } from './topups.module.js';
export { TopupsWorkerModule } from './worker/topups-worker.module.js';
