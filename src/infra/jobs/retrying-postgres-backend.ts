import { setTimeout as delay } from 'node:timers/promises';
import { createPostgresBackend } from 'bullmq';

/** BullMQ asks again at once after most errors of PostgreSQL: without a pause it asks as fast as it can. */
const PAUSE_AFTER_FAILURE_MS = 500;

/** What BullMQ keeps and this reaches into; the types of 6.7 do not show it. */
interface Readiness {
  readyPromise?: Promise<void> | undefined;
  waitUntilReady(): Promise<void>;
}
interface Backend {
  connection: Readiness;
}

/**
 * BullMQ's backend for PostgreSQL, of a connection that is tried again. BullMQ 6.7 keeps the promise of the first
 * connection for good: a database that goes away while a worker starts leaves it rejected, and the worker's loop asks it
 * again and again without ever giving the event loop back, so that the process neither works nor ends.
 */
export const createRetryingPostgresBackend: typeof createPostgresBackend = (
  name,
  options,
  factoryOptions,
) => {
  const backend = createPostgresBackend(name, options, factoryOptions);
  retryWhenRefused(backend as unknown as Readiness);
  retryWhenRefused((backend as unknown as Backend).connection);
  return backend;
};

function retryWhenRefused(of: Readiness): void {
  const waitUntilReady = of.waitUntilReady.bind(of);
  of.waitUntilReady = async () => {
    try {
      await waitUntilReady();
    } catch (error) {
      of.readyPromise = undefined;
      await delay(PAUSE_AFTER_FAILURE_MS, undefined, { ref: false });
      throw error;
    }
  };
}
