export const FIRST_RETRY_MS = 500;
const LAST_RETRY_MS = 30_000;

/** How long to wait after the `attempts`-th look at an order that led to nothing. */
export function retryDelayMs(attempts: number): number {
  return Math.min(LAST_RETRY_MS, FIRST_RETRY_MS * 2 ** Math.min(attempts, 10));
}
