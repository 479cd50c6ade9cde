import { ProviderUnavailable } from './esim-provider.js';

const FIRST_RETRY_MS = 500;
const LAST_RETRY_MS = 30_000;
/** A provider may name any time; nothing is forgotten for longer than this. */
const LONGEST_WAIT_MS = 60_000;

/**
 * Milliseconds to wait after the `attempts`-th look that led to nothing: what the provider asked for when it was
 * unavailable, else twice as long each time.
 */
export function retryDelayMs(attempts: number, error?: unknown): number {
  if (error instanceof ProviderUnavailable) {
    return Math.min(LONGEST_WAIT_MS, Math.max(FIRST_RETRY_MS, error.retryAfterMs));
  }
  return Math.min(LAST_RETRY_MS, FIRST_RETRY_MS * 2 ** Math.min(attempts, 10));
}
