import { setTimeout as delay } from 'node:timers/promises';
import { createPostgresBackend } from 'bullmq';

/** BullMQ retries at once after most PostgreSQL errors, so a pause is needed. */
const PAUSE_AFTER_FAILURE_MS = 500;

/** Private members of BullMQ's backend, which the types of 6.7 do not show. */
interface Readiness {
  readyPromise?: Promise<void> | undefined;
  waitUntilReady(): Promise<void>;
}
interface Backend {
  connection: Readiness;
}

/**
 * BullMQ's PostgreSQL backend with a connection that is retried. BullMQ 6.7 keeps the promise of the first connection
 * forever. If the database goes down while a worker starts, that promise stays rejected. The worker's loop then retries
 * without ever yielding to the event loop, so that the process neither works nor ends.
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
