/**
 * Jobs that a worker process can run (D68):
 * - `provisioning`: orders, cancellations and top-ups
 * - `webhooks`: deliveries, replays, discards
 * - `polls`: usage and states of eSIMs, callbacks of wholesalers, the live catalog
 * - `maintenance`: expiry, alerts, reconciliation, purges, partitions
 */
export const WORKER_JOBS = ['provisioning', 'webhooks', 'polls', 'maintenance'] as const;
export type WorkerJob = (typeof WORKER_JOBS)[number];
