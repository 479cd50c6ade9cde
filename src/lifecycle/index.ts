export { TakeCallback } from './take-callback.js';
export { LifecycleWorkerModule } from './worker/lifecycle-worker.module.js';
