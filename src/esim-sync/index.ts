/**
 * Synchronizes eSIMs with their providers: status, usage, expiry, requested actions.
 * Tables: none of its own; the poll_* and next_poll_at columns of esims are its schedule.
 * Callers: the worker (`EsimPoller`), and the callback listener (`TakeCallback`), which only brings polls forward.
 * Flow: EsimPoller claims a batch under a lease, PollEsimBatch queries the provider, EsimObserver (esims) records the
 * result, poll-plan.ts schedules the next poll. EsimActionWorker sends the actions that partners request, and reads
 * their effect if a call's outcome is unknown.
 */
export {
  CallbackAuthenticator,
  type CallbackRateLimit,
  CallbackSender,
} from './callbacks/callback-authenticator.js';
export { type CallbackTaker, TakeCallback } from './callbacks/take-callback.js';
export { CallbacksModule, EsimSyncWorkerModule } from './esim-sync.module.js';
