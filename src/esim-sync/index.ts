export { TakeCallback } from './take-callback.js';
export { EsimSyncWorkerModule } from './esim-sync.module.js';
