/**
 * Keeps eSIMs as their providers show them: status, usage, expiry.
 * Tables: none of its own; the poll_* and next_poll_at columns of esims are its schedule.
 * Called by the worker (`EsimPoller`) and by the listener for callbacks (`TakeCallback`), which only brings polls forward.
 * Flow: EsimPoller claims a batch under a lease, PollEsimBatch asks the provider, EsimObserver (esims) records it,
 * poll-plan.ts says when to ask next.
 */
export { TakeCallback } from './take-callback.js';
export { EsimSyncWorkerModule } from './esim-sync.module.js';
