export { TakeCallback } from './take-callback.js';
export { EsimSyncWorkerModule } from './worker/esim-sync-worker.module.js';
